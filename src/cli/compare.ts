import type { Command } from 'commander'
import { withScratchDatabase } from '../demo/scratch-database.js'
import { type ComparedStrategy, type CompareResult, compareStrategies } from '../workload/compare.js'
import { classOf, countByClass, type Workload } from '../workload/workload.js'
import { urlFrom } from './connect.js'
import { explained } from './database-errors.js'
import { type Edge, stderrColors } from './edge.js'
import { CommandError, EXIT } from './exit-codes.js'
import { ProgressBars } from './progress-bars.js'

export interface CompareInTerminalOptions {
  readonly workload: Workload
  readonly processes: number
  readonly concurrency: number
}

const HEADINGS: Readonly<Record<ComparedStrategy, string>> = {
  fifo: 'FIFO: first in, first out',
  fair: 'Fair: least service first',
}

/** The environment of `demo` and `replay`, for --help. */
export const SCRATCH_HELP = `Starts a PostgreSQL server in a temporary directory and removes it afterwards. With TENANTRY_DATABASE_URL or
DATABASE_URL set, uses that server instead, in a schema of its own that is dropped at the end.`

/** Runs a workload through both strategies with a progress display. Fails when a job was lost or was run twice. */
export async function compareInTerminal(
  edge: Edge,
  command: Command,
  options: CompareInTerminalOptions,
): Promise<CompareResult['comparison']> {
  const say = (what: string) => edge.stderr.write(`${what}\n`)
  const url = urlFrom(edge.environment)
  if (url) say(`using ${url.description}`)
  const scratch = { connectionString: url?.connectionString, signal: edge.signal, say }
  const { comparison, faults } = await withScratchDatabase(scratch, (database) =>
    compareStrategies({
      ...options,
      ...database,
      signal: edge.signal,
      onRun: (strategy) => progressOf(edge, command, { workload: options.workload, heading: HEADINGS[strategy] }),
    }),
  ).catch((error: unknown) => {
    throw url ? explained(error, url) : error
  })
  if (faults.length > 0) throw new CommandError(EXIT.failure, `${faults.join('; ')}; please report this as a bug`)
  return comparison
}

function progressOf(
  edge: Edge,
  command: Command,
  { workload, heading }: { readonly workload: Workload; readonly heading: string },
): (indices: readonly number[]) => void {
  const totals = countByClass(workload)
  const ended = { noisy: 0, quiet: 0 }
  const bars = new ProgressBars(edge.stderr, stderrColors(edge, command), {
    heading,
    bars: [
      { label: 'noisy tenants', total: totals.noisy },
      { label: 'quiet tenants', total: totals.quiet },
    ],
  })
  bars.draw([0, 0])
  return (indices) => {
    for (const index of indices) ended[classOf(workload, workload.jobs[index]?.tenant ?? '')] += 1
    bars.draw([ended.noisy, ended.quiet])
  }
}
