import { Command } from 'commander'
import type { Examined } from '../../diagnosis/doctor/check.js'
import { examine } from '../../store/doctor.js'
import { CONNECTION_HELP, schemaFrom } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, schemaOption } from '../options.js'
import { type Colors, counted, exactJson, printable } from '../output.js'
import { withSession } from '../session.js'

interface Options {
  readonly schema?: string
  readonly json?: true
}

export const doctorCommand: CommandFactory = (edge) =>
  new Command('doctor')
    .description('look for what is wrong with the queues and the database, and say what to do')
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((options: Options, command: Command) => doctor(edge, command, options))

async function doctor(edge: Edge, command: Command, options: Options): Promise<void> {
  const schema = schemaFrom(options.schema, edge.environment)
  const checks = await withSession(edge, (session) => examine(session, schema))
  const colors = stdoutColors(edge, command)
  if (options.json) edge.stdout.write(exactJson({ schema, checks }))
  else for (const each of checks) edge.stdout.write(lines(each, colors))
  const wrong = checks.filter(({ verdict }) => verdict === 'wrong').length
  if (wrong > 0)
    throw new CommandError(EXIT.failure, `${counted(wrong, 'check')} of ${checks.length} found something wrong`)
}

function lines({ check, title, verdict, findings, remedies }: Examined, colors: Colors): string {
  const mark = { ok: colors.green('ok'), wrong: colors.red('wrong'), skipped: colors.yellow('skipped') }[verdict]
  const found = findings.map((finding) => `    ${printable(finding)}\n`)
  const todo = remedies.flatMap(({ sentence, command }) => [
    `    > ${printable(sentence)}\n`,
    ...(command === undefined ? [] : [`      ${colors.dim(printable(command))}\n`]),
  ])
  return `${mark.padEnd(mark.length + 8 - verdict.length)} ${colors.bold(check)}: ${title}\n${found.join('')}${todo.join('')}`
}

const HELP = `
Only looks. Exit code 1 when a check found something wrong. What each check means: docs/operations.md.

${CONNECTION_HELP}

Examples:
  $ tenantry doctor
  $ tenantry doctor --json | jq '.checks[] | select(.verdict == "wrong")'`
