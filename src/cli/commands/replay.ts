import { Command } from 'commander'
import {
  compress,
  NOISY_RULE,
  readTrace,
  suggestCompression,
  suggestSlots,
  TRACE_JOBS_MAX,
  type Trace,
} from '../../workload/trace.js'
import { countByClass, type Workload } from '../../workload/workload.js'
import { compareInTerminal, SCRATCH_HELP } from '../compare.js'
import { comparisonReport } from '../comparison-report.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, positiveNumber, wholeNumber } from '../options.js'
import { counted, json, printable } from '../output.js'

interface ReplayOptions {
  readonly compress?: number
  readonly limit?: number
  readonly workers: number
  readonly concurrency?: number
  readonly json?: true
}

export const replayCommand: CommandFactory = (edge) =>
  new Command('replay')
    .description('replay a recorded workload once with FIFO and once with fair, and compare')
    .argument('<file>', 'log in Standard Workload Format, plain or gzipped')
    .option(
      '--compress <n>',
      'divide all times by this (default: so that both runs take about a minute, or what 200 jobs/s take)',
      positiveNumber,
    )
    .option('--limit <jobs>', 'replay only so many jobs from the start of the log', wholeNumber(1, TRACE_JOBS_MAX))
    .option('--workers <n>', 'worker processes', wholeNumber(1, 64), 2)
    .option(
      '--concurrency <n>',
      'jobs that each process runs at a time (default: so that the workload fills about 80 % of the slots)',
      wholeNumber(1, 100),
    )
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((file: string, options: ReplayOptions, command: Command) => replay(edge, command, { file, ...options }))

async function replay(edge: Edge, command: Command, options: ReplayOptions & { readonly file: string }): Promise<void> {
  const trace = await readTrace(options.file, options.limit)
  reportSkipped(edge, trace)
  const factor = options.compress ?? suggestCompression(trace)
  const workload = compress(trace, factor)
  checkDuration(workload, trace)
  const concurrency = options.concurrency ?? Math.max(1, Math.ceil(suggestSlots(workload) / options.workers))
  warnOfShortHandlers(edge, workload)
  const remark = `replaying ${counted(trace.jobs.length, 'job')} with all times divided by ${factor.toLocaleString('en-US')}`
  edge.stderr.write(`${remark}: ${seconds(durationMs(workload))} of arrivals for each strategy\n`)

  const comparison = await compareInTerminal(edge, command, { workload, processes: options.workers, concurrency })
  const facts = factsOf(workload, trace, factor)
  if (options.json) {
    edge.stdout.write(json({ ...comparison, ...facts, workers: options.workers, concurrency }))
    return
  }
  edge.stdout.write(`\n${described(facts)}\n`)
  edge.stdout.write(`${options.workers} worker processes ran ${counted(concurrency, 'job')} each at a time.\n\n`)
  edge.stdout.write(comparisonReport(comparison, { colors: stdoutColors(edge, command), startOrder: false }))
  edge.stdout.write('\n')
  for (const line of acknowledgements(trace)) edge.stdout.write(`${printable(line)}\n`)
}

/** Below this the claims take longer than the handlers, and a replay measures them more than the order of jobs. */
const HANDLER_MS_MIN = 10

function warnOfShortHandlers(edge: Edge, { jobs }: Workload): void {
  const meanMs = jobs.reduce((sum, job) => sum + job.durationMs, 0) / jobs.length
  if (meanMs >= HANDLER_MS_MIN) return
  edge.stderr.write(
    `handlers take ${meanMs.toFixed(1)} ms on average, about as long as claiming does; ` +
      'a smaller --compress, perhaps with --limit, shows more of the difference\n',
  )
}

/** Longer than anybody waits, and than Node's timers count. */
const REPLAY_HOURS_MAX = 24

function checkDuration(workload: Workload, trace: Trace): void {
  const longestMs = workload.jobs.reduce((most, job) => Math.max(most, job.dueMs + job.durationMs), 0)
  const hours = Math.round(longestMs / 3_600_000)
  if (hours <= REPLAY_HOURS_MAX) return
  throw new CommandError(
    EXIT.usage,
    `each run of this replay would take ${hours.toLocaleString('en-US')} hours; ` +
      `raise --compress: ${suggestCompression(trace)} makes it ${seconds(durationMs(compress(trace, suggestCompression(trace))))}`,
  )
}

interface Facts {
  readonly jobs: { readonly noisy: number; readonly quiet: number }
  readonly tenants: { readonly noisy: number; readonly quiet: number }
  readonly compress: number
  readonly skippedLines: number
}

function factsOf(workload: Workload, trace: Trace, factor: number): Facts {
  const tenants = new Set(workload.jobs.map((job) => job.tenant)).size
  const noisy = workload.noisyTenants.size
  return {
    jobs: countByClass(workload),
    tenants: { noisy, quiet: tenants - noisy },
    compress: factor,
    skippedLines: trace.skippedCount,
  }
}

function described({ jobs, tenants }: Facts): string {
  return [
    `noisy: ${counted(tenants.noisy, 'tenant')} with ${counted(jobs.noisy, 'job')}`,
    `quiet: ${counted(tenants.quiet, 'tenant')} with ${counted(jobs.quiet, 'job')}`,
    `(${NOISY_RULE})`,
  ].join('\n')
}

const SKIPPED_LINES_SHOWN = 10

function reportSkipped(edge: Edge, { skipped, skippedCount }: Trace): void {
  for (const { line, reason } of skipped.slice(0, SKIPPED_LINES_SHOWN)) {
    edge.stderr.write(`line ${line} skipped: ${printable(reason)}\n`)
  }
  const more = skippedCount - Math.min(skipped.length, SKIPPED_LINES_SHOWN)
  if (more > 0) edge.stderr.write(`${counted(more, 'more line')} skipped\n`)
}

/** Archives ask for it, so whoever shows figures from a log shows whom to thank as well. */
function acknowledgements({ header }: Trace): readonly string[] {
  return header.filter((line) => line.startsWith('Acknowledge:')).map((line) => `Log: ${line}`)
}

function durationMs(workload: Workload): number {
  return workload.jobs.at(-1)?.dueMs ?? 0
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en-US', { maximumFractionDigits: 1 })} s`
}

const HELP = `
Every user of the log becomes a tenant, its submit time the time of the enqueue, its run time how long the handler
works (a timer, no CPU). Lines that are malformed or lack one of these are reported and skipped.
Two classes are compared: ${NOISY_RULE}; all others are quiet.
A turn of the fair claim is one job, however long: in a log where few jobs are very long, those that hold the slots
delay everybody, in either order.

${SCRATCH_HELP}

Examples:
  $ tenantry replay NASA-iPSC-1993-3.1-cln.swf.gz
  $ tenantry replay log.swf --compress 100000 --limit 2000
  $ tenantry replay log.swf.gz --json | jq .fair.quietWaitMs`
