import { Command, Option } from 'commander'
import type { JobFilter } from '../../job/filter.js'
import { TIMEOUT_MS_MAX } from '../../limits.js'
import { CONNECTION_HELP } from '../connect.js'
import type { CommandFactory, Edge } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { duration, schemaOption } from '../options.js'
import { counted, printable } from '../output.js'
import { described, filterOf, filterOptions } from '../queue-filter.js'
import { withTenantry } from '../session.js'
import { StatusLine } from '../status-line.js'

interface Options extends JobFilter {
  readonly until: 'idle' | 'empty'
  readonly timeout?: number
  readonly schema?: string
}

export const drainCommand: CommandFactory = (edge) =>
  filterOptions(new Command('drain'))
    .description('pause a queue, a tenant or a kind, and wait until nothing of it runs')
    .addOption(
      new Option('--until <state>', 'idle: paused, nothing runs; empty: not paused, nothing waits either')
        .choices(['idle', 'empty'])
        .default('idle'),
    )
    .option('--timeout <duration>', 'give up after this, as in 30s or 5m', duration(1, TIMEOUT_MS_MAX))
    .addOption(schemaOption())
    .addHelpText('after', HELP)
    .action((queue: string, options: Options) => drain(edge, queue, options))

async function drain(edge: Edge, queue: string, options: Options): Promise<void> {
  const { until, timeout, schema } = options
  const status = new StatusLine(edge.stderr)
  const drained = await withTenantry(edge, schema === undefined ? {} : { schema }, (tenantry) =>
    tenantry.drain(queue, {
      ...filterOf(options),
      until,
      ...(timeout !== undefined && { timeoutMs: timeout }),
      signal: edge.signal,
      onProgress: ({ running, waiting }) => status.show(`${counted(running, 'job')} running, ${waiting} waiting`),
    }),
  ).finally(() => status.clear())
  const what = printable(described('queue', queue, filterOf(options)))
  if (!drained) throw new CommandError(EXIT.failure, `${what} is not ${until} yet; its jobs go on`)
  edge.stdout.write(`${what} is ${until}.\n`)
}

const HELP = `
What was paused stays paused: end it with resume. With --until empty, a quota of 0 keeps more jobs from coming.
Ends with 1 when the time is over first.

${CONNECTION_HELP}

Examples:
  $ tenantry drain mail --timeout 5m && deploy && tenantry resume mail
  $ tenantry queues set old --quota 0 && tenantry drain old --until empty`
