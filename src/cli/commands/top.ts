import { Command, Option } from 'commander'
import { delay, systemClock } from '../../clock.js'
import type { TenantOrder } from '../../numbers/numbers.js'
import type { Tenantry } from '../../tenantry.js'
import { CONNECTION_HELP } from '../connect.js'
import { type CommandFactory, type Edge, interruptible, stdoutColors } from '../edge.js'
import { queueLines, tenantTable } from '../numbers-report.js'
import { duration, schemaOption } from '../options.js'
import { type Colors, printable } from '../output.js'
import { Screen } from '../screen.js'
import { withTenantry } from '../session.js'
import { minutesOption, queueOption, sortOption } from './tenants.js'

interface Options {
  readonly queue: string
  readonly sort: TenantOrder
  readonly minutes: number
  /** Milliseconds. */
  readonly interval: number
  readonly once?: true
  readonly schema?: string
}

/** A look may take this part of the time at most: with very many tenants it comes less often than asked for. */
const LOOKING_SHARE = 0.2

const INTERVAL_MS_MAX = 3_600_000

/** Tenants that are printed when there is no window whose height says how many. */
const ROWS_DEFAULT = 20

export const topCommand: CommandFactory = (edge) =>
  new Command('top')
    .description('show the tenants of a queue live: who waits, who runs, who is starved or noisy')
    .addOption(queueOption())
    .addOption(sortOption())
    .addOption(minutesOption())
    .addOption(
      new Option('--interval <duration>', 'time between two looks, as in 500ms or 10s')
        .argParser(duration(1, INTERVAL_MS_MAX))
        .default(2_000, '2s'),
    )
    .option('--once', 'print one look and end')
    .addOption(schemaOption())
    .addHelpText('after', HELP)
    .action((options: Options, command: Command) => top(edge, command, options))

async function top(edge: Edge, command: Command, options: Options): Promise<void> {
  const colors = stdoutColors(edge, command)
  await withTenantry(edge, options, async (tenantry) => {
    if (options.once) edge.stdout.write(await look(tenantry, options, { colors, rows: ROWS_DEFAULT }))
    else await watch(edge, tenantry, { ...options, colors })
  })
}

/** Looks again and again until q is pressed or the command is interrupted. */
async function watch(edge: Edge, tenantry: Tenantry, options: Options & { readonly colors: Colors }): Promise<void> {
  const screen = edge.stdout.isTTY ? new Screen(edge.stdout) : undefined
  const quit = new AbortController()
  const unsubscribe = edge.keys?.((key) => {
    if (key === 'q' || key === '\u0003') quit.abort()
  })
  const ended = AbortSignal.any([quit.signal, edge.signal])
  try {
    while (!ended.aborted) {
      const startedMs = systemClock.monotonicMs()
      const text = await interruptible(edge, look(tenantry, options, { colors: options.colors, rows: rowsOf(screen) }))
      if (screen) screen.draw(`${text}q quits`)
      else edge.stdout.write(`${text}\n`)
      const tookMs = systemClock.monotonicMs() - startedMs
      await delay(Math.max(options.interval, tookMs / LOOKING_SHARE - tookMs), ended)
    }
    edge.signal.throwIfAborted()
  } finally {
    unsubscribe?.()
    screen?.close()
  }
}

async function look(
  tenantry: Tenantry,
  { queue, sort, minutes }: Options,
  { colors, rows }: { readonly colors: Colors; readonly rows: number },
): Promise<string> {
  const [[of], tenants] = await Promise.all([
    tenantry.queues({ queue, minutes }),
    tenantry.tenants({ queue, sort, minutes }),
  ])
  const time = systemClock.wallClock().toISOString().slice(11, 19)
  const head = `${colors.bold(printable(queue))}  ${time} UTC, last ${minutes} min`
  if (!of) return `${head}\nthere is no such queue: nothing was enqueued, set or served there\n`
  return `${[head, ...queueLines(of), ''].join('\n')}\n${tenantTable(tenants.slice(0, rows), colors)}`
}

/** What is left below the four lines of the head, the line of titles and the last one. */
function rowsOf(screen: Screen | undefined): number {
  return screen ? Math.max(1, screen.rows - 7) : ROWS_DEFAULT
}

const HELP = `
Not on a terminal it prints plain text, look after look; with --once it ends after the first.

${CONNECTION_HELP}

Examples:
  $ tenantry top
  $ tenantry top --queue mail --sort wait
  $ tenantry top --once`
