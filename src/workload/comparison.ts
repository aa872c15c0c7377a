import { type Distribution, distributionOf } from './statistics.js'
import type { Workload } from './workload.js'

/** One handler that started, as the worker process saw it. Times are on the clock that all processes share. */
export interface HandlerStart {
  /** Position of the job in the workload. */
  readonly index: number
  readonly attempt: number
  readonly startedMs: number
  readonly endedMs: number
}

/** Everything that one run of a workload through one strategy left behind. */
export interface RunRecord {
  /** When each job of the workload was enqueued, by its position. Taken just before the commit, so no wait is negative. */
  readonly enqueuedMs: Float64Array
  readonly starts: readonly HandlerStart[]
  /** How long each claim took that brought at least one job. */
  readonly claimsMs: readonly number[]
  /** When the last job was settled: a job that has only run has not gone through the queue yet. */
  readonly settledMs: number
}

/** The figures of one strategy. Part of what `--json` prints: members are added, never renamed or removed. */
export interface StrategyFigures {
  /** Position of the last quiet job in the order in which handlers started; null without quiet jobs. */
  readonly lastQuietStart: number | null
  /** From enqueue to the start of the handler; null for a class without jobs. */
  readonly quietWaitMs: Distribution | null
  readonly noisyWaitMs: Distribution | null
  readonly claimMs: Pick<Distribution, 'p50' | 'p95' | 'p99'> | null
  /** Jobs per second between the first enqueue and the moment when the last job was settled. */
  readonly jobsPerSecond: number
  /** Handlers that started although the same job had been started before. */
  readonly doubleClaims: number
}

export interface Comparison {
  readonly fifo: StrategyFigures
  readonly fair: StrategyFigures
}

export function figuresOf(workload: Workload, record: RunRecord): StrategyFigures {
  const firstStarts = inStartOrder(record.starts)
  const isQuiet = (start: HandlerStart) => !workload.noisyTenants.has(workload.jobs[start.index]?.tenant ?? '')
  const waitMs = (start: HandlerStart) => start.startedMs - (record.enqueuedMs[start.index] ?? Number.NaN)
  const claims = distributionOf(record.claimsMs)
  return {
    lastQuietStart: firstStarts.findLastIndex(isQuiet) + 1 || null,
    quietWaitMs: distributionOf(firstStarts.filter(isQuiet).map(waitMs)) ?? null,
    noisyWaitMs: distributionOf(firstStarts.filter((start) => !isQuiet(start)).map(waitMs)) ?? null,
    claimMs: claims ? { p50: claims.p50, p95: claims.p95, p99: claims.p99 } : null,
    jobsPerSecond: throughput(record, firstStarts.length),
    doubleClaims: record.starts.length - firstStarts.length,
  }
}

/** Jobs of the workload whose handler never started. */
export function countLost(workload: Workload, record: RunRecord): number {
  return workload.jobs.length - new Set(record.starts.map((start) => start.index)).size
}

/** The first start of every job, earliest first. */
function inStartOrder(starts: readonly HandlerStart[]): HandlerStart[] {
  const seen = new Set<number>()
  return starts
    .toSorted((a, b) => a.startedMs - b.startedMs)
    .filter((start) => !seen.has(start.index) && seen.add(start.index))
}

function throughput(record: RunRecord, jobs: number): number {
  const first = record.enqueuedMs.reduce((least, ms) => Math.min(least, ms), Number.POSITIVE_INFINITY)
  return jobs === 0 ? 0 : (jobs * 1_000) / (record.settledMs - first)
}
