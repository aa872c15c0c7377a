import { Command } from 'commander'
import type { QueueNumbers } from '../../numbers/numbers.js'
import type { QueueSettings } from '../../settings/settings.js'
import { CONNECTION_HELP } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { jsonOption, schemaOption } from '../options.js'
import { type Column, json, table } from '../output.js'
import { withTenantry } from '../session.js'
import { settingsGroup } from '../settings-commands.js'

interface Options {
  readonly schema?: string
  readonly json?: true
}

export const queuesCommand: CommandFactory = (edge) =>
  settingsGroup<QueueSettings>(
    edge,
    {
      of: 'queue',
      description: 'print the queues and what waits and runs in each; set what a queue does',
      configure: (tenantry, { queue }, change) => tenantry.configureQueue(queue, change),
      example: 'queues set mail --rate 100/s --tenant-concurrency 5 --objective 95%/2s',
    },
    listCommand(edge),
  )

const listCommand: CommandFactory = (edge) =>
  new Command('list')
    .description('print the queues that have jobs, settings or workers, and what waits and runs in each; the default')
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', `\n${CONNECTION_HELP}`)
    .action((options: Options, command: Command) => list(edge, command, options))

const COLUMNS: readonly Column[] = [
  { title: 'queue' },
  { title: 'strategy' },
  { title: 'available', align: 'right' },
  { title: 'blocked', align: 'right' },
  { title: 'scheduled', align: 'right' },
  { title: 'running', align: 'right' },
  { title: 'tenants', align: 'right' },
  { title: 'workers', align: 'right' },
  { title: '' },
]

async function list(edge: Edge, command: Command, options: Options): Promise<void> {
  const queues = await withTenantry(edge, options, (tenantry) => tenantry.queues())
  if (options.json) edge.stdout.write(json(queues))
  else edge.stdout.write(table(COLUMNS, queues.map(row), stdoutColors(edge, command)))
}

function row(of: QueueNumbers): readonly string[] {
  const counts = [of.available, of.blocked, of.scheduled, of.running, of.tenants, of.workers]
  return [of.queue, of.strategy, ...counts.map((count) => count.toLocaleString('en-US')), of.paused ? 'paused' : '']
}
