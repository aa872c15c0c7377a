import { Command } from 'commander'
import { JOBS_PER_QUIET_TENANT, NOISY_JOBS, noisyNeighbour, QUIET_TENANTS } from '../../workload/noisy-neighbour.js'
import { compareInTerminal, SCRATCH_HELP } from '../compare.js'
import { comparisonReport, comparisonSummary } from '../comparison-report.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { jsonOption, wholeNumber } from '../options.js'
import { json } from '../output.js'

interface DemoOptions {
  readonly workers: number
  readonly concurrency: number
  readonly json?: true
}

export const demoCommand: CommandFactory = (edge) =>
  new Command('demo')
    .description('run a noisy neighbour once with FIFO and once with fair, and compare')
    .option('--workers <n>', 'worker processes', wholeNumber(1, 64), 2)
    .option('--concurrency <n>', 'jobs that each process runs at a time', wholeNumber(1, 100), 2)
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((options: DemoOptions, command: Command) => demo(edge, command, options))

async function demo(edge: Edge, command: Command, options: DemoOptions): Promise<void> {
  const workload = noisyNeighbour()
  const { workers: processes, concurrency } = options
  const comparison = await compareInTerminal(edge, command, { workload, processes, concurrency })
  if (options.json) {
    edge.stdout.write(json(comparison))
    return
  }
  const count = (n: number) => n.toLocaleString('en-US')
  edge.stdout.write(
    `\nOne tenant enqueued ${count(NOISY_JOBS)} jobs, then ${QUIET_TENANTS} tenants enqueued ${JOBS_PER_QUIET_TENANT} each; ` +
      `${processes} worker processes ran ${concurrency} jobs at a time.\n\n`,
  )
  edge.stdout.write(comparisonReport(comparison, { colors: stdoutColors(edge, command), startOrder: true }))
  const summary = comparisonSummary(comparison)
  if (summary) edge.stdout.write(`\n${summary}\n`)
}

const HELP = `
${SCRATCH_HELP}

Waits are from the commit of the enqueue to the start of the handler; percentiles are nearest-rank.

Examples:
  $ tenantry demo
  $ tenantry demo --json | jq .fair.quietWaitMs.p95
  $ tenantry demo --workers 4 --concurrency 10`
