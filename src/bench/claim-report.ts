import type { ClaimBenchResult } from './claim-bench.js'
import type { BenchEnvironment } from './environment.js'
import type { Comparison, ResultRow } from './summary.js'
import { formatted, markdownTable, type TextTable, verdict } from './text-table.js'

/** From which load on the machine has other work. */
const BUSY = 0.5

export function resultTable(results: readonly ResultRow[]): TextTable {
  const titles = [
    'scenario',
    'strategy',
    'tenants',
    'idle',
    'queued',
    'history',
    'conns',
    'batch',
    'server µs/job',
    '(min–max)',
  ]
  return {
    words: 2,
    titles: [...titles, 'vacuum µs/job', 'jobs/s', 'WAL B/job', 'buffers/job', 'claim p50', 'p95', 'p99 ms'],
    rows: results.map((row) => [
      row.scenario,
      row.strategy,
      ...[row.activeTenants, row.idleTenants, row.backlog, row.historyJobs, row.connections, row.batch].map((n) =>
        formatted(n, 0),
      ),
      formatted(row.serverUsPerJob, 1),
      row.spread.serverUsPerJob
        ? `${formatted(row.spread.serverUsPerJob.min, 1)}–${formatted(row.spread.serverUsPerJob.max, 1)}`
        : '-',
      formatted(row.vacuumUsPerJob, 1),
      formatted(row.jobsPerSecond, 0),
      formatted(row.walBytesPerJob, 0),
      formatted(row.buffersPerJob, 1),
      formatted(row.claimMs.p50, 2),
      formatted(row.claimMs.p95, 2),
      formatted(row.claimMs.p99, 2),
    ]),
  }
}

export function comparisonTable(comparisons: readonly Comparison[]): TextTable {
  return {
    words: 3,
    titles: ['fair in', 'figure', 'against', 'ratio', 'target', ''],
    rows: comparisons.map(({ scenario, metric, against, ratio, most, least, met }) => [
      scenario,
      metric,
      against.startsWith('fifo') ? against : `itself in ${against}`,
      formatted(ratio, 2),
      bound({ most, least }),
      verdict(met),
    ]),
  }
}

function bound({ most, least }: { readonly most?: number | undefined; readonly least?: number | undefined }): string {
  if (most !== undefined) return `≤ ${formatted(most, 1)}`
  return least === undefined ? '-' : `≥ ${formatted(least, 1)}`
}

export function environmentLine(environment: BenchEnvironment): string {
  const { tenantry, node, postgresql, server, system, cpu, cores, loadBefore } = environment
  const database = `PostgreSQL ${postgresql}${server === 'embedded' ? ' (embedded)' : ''}`
  const busy =
    loadBefore > BUSY ? `; other work ran beside it (load ${loadBefore.toFixed(1)} before), so compare ratios` : ''
  return `tenantry ${tenantry}, ${database}, Node ${node}, ${system}, ${cores} × ${cpu}${busy}`
}

/** The file that stands beside the JSON, with the command that made both. */
export function claimMarkdown({ results, comparisons, environment }: ClaimBenchResult, command: string): string {
  return `Made by \`${command}\` at ${environment.measuredAt}. Do not edit.
${environmentLine(environment)}.

${markdownTable(comparisonTable(comparisons))}
Medians of ${results[0]?.runs ?? 0} interleaved runs.

${markdownTable(resultTable(results))}`
}
