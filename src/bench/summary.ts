import type { Strategy } from '../settings/settings.js'
import type { Governance } from './governance.js'
import type { RunFigures } from './measure.js'
import type { Metric, Scenario, Target } from './scenarios.js'

/** One line of the result: a strategy in a scenario. Figures are medians over the runs. */
export interface ResultRow extends Omit<Scenario, 'name' | 'strategies' | 'targets' | 'fresh' | 'governance'> {
  readonly scenario: string
  readonly strategy: Strategy
  /** Null where nothing is set. */
  readonly governance: Governance | null
  readonly runs: number
  readonly serverUsPerJob: number | null
  readonly vacuumUsPerJob: number | null
  readonly walBytesPerJob: number | null
  readonly buffersPerJob: number | null
  readonly jobsPerSecond: number | null
  /** Percentiles of each run; of them the median. */
  readonly claimMs: RunFigures['claimMs']
  readonly emptyClaims: number
  readonly lateClaims: number
  /** Smallest and largest of the runs. */
  readonly spread: Readonly<Record<Metric, Spread | null>>
}

export interface Spread {
  readonly min: number
  readonly max: number
}

/** A figure of the fair strategy beside what it is measured against. */
export interface Comparison {
  readonly scenario: string
  readonly metric: Metric
  /** `fifo`, or the scenario in which it is compared with itself or, where that is said, with FIFO. */
  readonly against: string
  readonly ratio: number | null
  readonly most?: number
  readonly least?: number
  /** Null when it could not be measured, or when there is no bound. */
  readonly met: boolean | null
}

export interface MeasuredRuns {
  readonly scenario: Scenario
  readonly strategy: Strategy
  readonly runs: readonly RunFigures[]
}

export function resultOf({ scenario, strategy, runs }: MeasuredRuns): ResultRow {
  const of = (figure: (run: RunFigures) => number | null) => seen(runs.map(figure))
  const percentileOf = (name: keyof RunFigures['claimMs']) => median(runs.map(({ claimMs }) => claimMs[name])) ?? 0
  const { name, activeTenants, idleTenants, backlog, historyJobs, history, connections, batch, jobs, governance } =
    scenario
  return {
    scenario: name,
    strategy,
    governance: governance ?? null,
    activeTenants,
    idleTenants,
    backlog,
    historyJobs,
    history,
    connections,
    batch,
    jobs,
    runs: runs.length,
    serverUsPerJob: median(of((run) => run.serverUsPerJob)),
    vacuumUsPerJob: median(of((run) => run.vacuumUsPerJob)),
    walBytesPerJob: median(of((run) => run.walBytesPerJob)),
    buffersPerJob: median(of((run) => run.buffersPerJob)),
    jobsPerSecond: median(of((run) => run.jobsPerSecond)),
    claimMs: { p50: percentileOf('p50'), p95: percentileOf('p95'), p99: percentileOf('p99') },
    emptyClaims: median(of((run) => run.emptyClaims)) ?? 0,
    lateClaims: median(of((run) => run.lateClaims)) ?? 0,
    spread: {
      serverUsPerJob: spread(of((run) => run.serverUsPerJob)),
      walBytesPerJob: spread(of((run) => run.walBytesPerJob)),
      buffersPerJob: spread(of((run) => run.buffersPerJob)),
      jobsPerSecond: spread(of((run) => run.jobsPerSecond)),
    },
  }
}

/** Every target of the scenarios beside what was measured. */
export function comparisonsOf(scenarios: readonly Scenario[], rows: readonly ResultRow[]): readonly Comparison[] {
  const row = (scenario: string, strategy: Strategy) =>
    rows.find((each) => each.scenario === scenario && each.strategy === strategy)
  return scenarios.flatMap(({ name, targets }) =>
    targets.map((target) => {
      const { scenario, strategy = 'fair' } =
        target.against === 'fifo' ? ({ scenario: name, strategy: 'fifo' } as const) : target.against
      const other = row(scenario, strategy)
      return comparisonOf(name, target, ratio(row(name, 'fair')?.[target.metric], other?.[target.metric]))
    }),
  )
}

function comparisonOf(scenario: string, target: Target, ratio: number | null): Comparison {
  const { metric, against, most, least } = target
  const isBound = most !== undefined || least !== undefined
  return {
    scenario,
    metric,
    against: against === 'fifo' ? 'fifo' : `${against.strategy ? `${against.strategy} in ` : ''}${against.scenario}`,
    ratio,
    ...(most !== undefined && { most }),
    ...(least !== undefined && { least }),
    met: ratio === null || !isBound ? null : ratio <= (most ?? Number.POSITIVE_INFINITY) && ratio >= (least ?? 0),
  }
}

function ratio(figure: number | null | undefined, against: number | null | undefined): number | null {
  return figure == null || !against ? null : figure / against
}

function seen(values: readonly (number | null)[]): readonly number[] {
  return values.filter((value) => value !== null)
}

/** The middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number | null {
  const ascending = values.toSorted((a, b) => a - b)
  const upper = ascending[Math.floor(ascending.length / 2)]
  const lower = ascending[Math.ceil(ascending.length / 2) - 1]
  return upper === undefined || lower === undefined ? null : (upper + lower) / 2
}

function spread(values: readonly number[]): Spread | null {
  return values.length === 0 ? null : { min: Math.min(...values), max: Math.max(...values) }
}
