import { Command } from 'commander'
import type { Remedy, Why, WhyTarget } from '../../diagnosis/why.js'
import { CONNECTION_HELP } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, schemaOption } from '../options.js'
import { type Colors, exactJson, printable } from '../output.js'
import { withTenantry } from '../session.js'

interface Options {
  readonly tenant?: string
  readonly queue?: string
  readonly kind?: string
  readonly schema?: string
  readonly json?: true
}

export const whyCommand: CommandFactory = (edge) =>
  new Command('why')
    .description('say why a job, or the next job of a tenant, does not run, and what would change it')
    .argument('[job-id]', 'id of the job; or ask about a tenant')
    .option('--tenant <tenant>', 'ask about the next job of this tenant')
    .option('--queue <queue>', 'queue of the tenant (default: default)')
    .option('--kind <kind>', 'only jobs of this kind')
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((id: string | undefined, options: Options, command: Command) => why(edge, command, { id, options }))

async function why(
  edge: Edge,
  command: Command,
  given: { readonly id: string | undefined; readonly options: Options },
) {
  const { options } = given
  const target = targetOf(given.id, options)
  const answer = await withTenantry(edge, options, (tenantry) => tenantry.why(target))
  edge.stdout.write(options.json ? exactJson(answer) : paragraphs(answer, stdoutColors(edge, command)))
}

function targetOf(id: string | undefined, { tenant, queue, kind }: Options): WhyTarget {
  if (id !== undefined) {
    if (tenant === undefined && queue === undefined && kind === undefined) return { job: id }
    throw new CommandError(EXIT.usage, 'give the id of a job, or --tenant with --queue and --kind, not both')
  }
  if (tenant === undefined)
    throw new CommandError(EXIT.usage, 'nothing to ask about; give the id of a job, or --tenant')
  return { queue: queue ?? 'default', tenant, ...(kind !== undefined && { kind }) }
}

function paragraphs(answer: Why, { bold, dim }: Colors): string {
  const remedies = answer.remedies.map((remedy) => remedyLines(remedy, dim)).join('')
  return `${bold(answer.rule)}\n${printable(answer.explanation)}\n${remedies}`
}

function remedyLines({ sentence, command, call }: Remedy, dim: Colors['dim']): string {
  const ways = [command, call].flatMap((way) => (way === undefined ? [] : [`    ${dim(printable(way))}\n`]))
  return `  - ${printable(sentence)}\n${ways.join('')}`
}

const HELP = `
Names the one rule that binds: a pause, no worker for the kind, a lock and by whose pid, the key, a limit, a rate, busy
slots, or how many jobs come first. The rules in their order: docs/why.md.

${CONNECTION_HELP}

Examples:
  $ tenantry why 42
  $ tenantry why --tenant acme --queue default --kind send-invoice
  $ tenantry why 42 --json | jq -r .rule`
