import type { Comparison, StrategyFigures } from '../workload/comparison.js'
import type { Distribution } from '../workload/statistics.js'
import { type Colors, table } from './output.js'

export interface ReportOptions {
  readonly colors: Colors
  /** Whether the order of starts means something: it does when everything was enqueued at once. */
  readonly startOrder: boolean
}

/** The figures of both strategies side by side, one figure a line. */
export function comparisonReport({ fifo, fair }: Comparison, { colors, startOrder }: ReportOptions): string {
  const row = (label: string, figure: (figures: StrategyFigures) => number | null | undefined, digits = 1) => [
    label,
    formatted(figure(fifo), digits),
    formatted(figure(fair), digits),
  ]
  const waits = (label: string, wait: (figures: StrategyFigures) => Distribution | null) =>
    (['mean', 'p50', 'p95', 'p99', 'max'] as const).map((key) =>
      row(`${label}, ${key} (ms)`, (figures) => wait(figures)?.[key]),
    )
  const rows = [
    row('throughput (jobs/s)', (figures) => figures.jobsPerSecond, 0),
    ...(startOrder ? [row('last quiet job started as number', (figures) => figures.lastQuietStart, 0)] : []),
    ...waits('quiet tenants wait', (figures) => figures.quietWaitMs),
    ...waits('noisy tenants wait', (figures) => figures.noisyWaitMs),
    ...(['p50', 'p95', 'p99'] as const).map((key) => row(`claim, ${key} (ms)`, (figures) => figures.claimMs?.[key])),
    row('jobs started twice', (figures) => figures.doubleClaims, 0),
  ]
  const columns = [{ title: '' }, { title: 'FIFO', align: 'right' }, { title: 'fair', align: 'right' }] as const
  return table(columns, rows, colors)
}

/** The sentence that the table is there for; undefined when there is nothing to compare. */
export function comparisonSummary({ fifo, fair }: Comparison): string | undefined {
  if (!fifo.quietWaitMs || !fair.quietWaitMs) return undefined
  const [before, after] = [fifo.quietWaitMs.p95, fair.quietWaitMs.p95]
  return `95 % of the quiet tenants' jobs started within ${formatted(after, 1)} ms instead of ${formatted(before, 1)} ms.`
}

function formatted(value: number | null | undefined, digits: number): string {
  if (value === null || value === undefined) return '-'
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
