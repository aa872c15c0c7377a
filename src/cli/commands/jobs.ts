import { Command } from 'commander'
import type { JobRecord } from '../../job/job.js'
import { CONNECTION_HELP } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, schemaOption } from '../options.js'
import { exactJson, printable } from '../output.js'
import { withTenantry } from '../session.js'

interface Options {
  readonly schema?: string
  readonly json?: true
}

export const jobsCommand: CommandFactory = (edge) =>
  new Command('jobs')
    .description('look at single jobs and cancel them')
    .addCommand(showCommand(edge))
    .addCommand(cancelCommand(edge))
    .addHelpText('after', '\nExample:\n  $ tenantry jobs show 42')

const showCommand: CommandFactory = (edge) =>
  new Command('show')
    .description('print a job: waiting, running or finished')
    .argument('<id>', 'id of the job, as enqueue printed it')
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', `\n${CONNECTION_HELP}\n\nExample:\n  $ tenantry jobs show 42 --json | jq .errors`)
    .action((id: string, options: Options, command: Command) => show(edge, command, { id, ...options }))

const cancelCommand: CommandFactory = (edge) =>
  new Command('cancel')
    .description('cancel a job that waits; one that runs is left alone')
    .argument('<id>', 'id of the job')
    .option('--reason <text>', 'kept with the job in the history')
    .addOption(schemaOption())
    .addHelpText('after', `\n${CONNECTION_HELP}\n\nExample:\n  $ tenantry jobs cancel 42 --reason 'sent by hand'`)
    .action((id: string, options: Options & { readonly reason?: string }) => cancel(edge, id, options))

async function show(edge: Edge, command: Command, options: Options & { readonly id: string }): Promise<void> {
  const { id } = options
  const job = await withTenantry(edge, options, (tenantry) => tenantry.job(id))
  if (!job) throw new CommandError(EXIT.failure, `there is no job ${id}; it never was, or its history is gone`)
  if (options.json) {
    edge.stdout.write(exactJson(job))
    return
  }
  const { bold } = stdoutColors(edge, command)
  for (const [name, value] of described(job)) edge.stdout.write(`${bold(name.padEnd(12))}${printable(value)}\n`)
}

function described(job: JobRecord): readonly (readonly [name: string, value: string])[] {
  const attempts: (readonly [string, string])[] = job.errors.map((error) => [
    `attempt ${error.attempt}`,
    `${error.at} ${error.name}: ${error.message}`,
  ])
  return [
    ['id', job.id],
    ['state', job.state],
    ['kind', job.kind],
    ['tenant', job.tenant],
    ['queue', job.queue],
    ...(job.key === undefined ? [] : [['key', job.key] as const]),
    ['attempt', `${job.attempt} of ${job.maxAttempts}`],
    ['priority', String(job.priority)],
    ['created at', job.createdAt.toISOString()],
    ['run at', job.runAt.toISOString()],
    ...(job.finalizedAt ? [['ended at', job.finalizedAt.toISOString()] as const] : []),
    ['payload', JSON.stringify(job.payload) ?? ''],
    ...attempts,
  ]
}

async function cancel(edge: Edge, id: string, options: Options & { readonly reason?: string }): Promise<void> {
  const cancelled = await withTenantry(edge, options, (tenantry) =>
    tenantry.cancel(id, options.reason === undefined ? {} : { reason: options.reason }),
  )
  if (!cancelled) throw new CommandError(EXIT.failure, `job ${id} does not wait: it runs, has ended, or never was`)
  edge.stdout.write(`Job ${id} is cancelled.\n`)
}
