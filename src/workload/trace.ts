import { readSwf, type SwfJob } from './swf.js'
import { type Workload, WorkloadError, type WorkloadJob } from './workload.js'

/** A recorded workload as it was read from a file. */
export interface Trace {
  /** In the order of their submission. */
  readonly jobs: readonly SwfJob[]
  /** The header, without its semicolons: source and acknowledgement belong to the data. */
  readonly header: readonly string[]
  readonly skipped: readonly SkippedLine[]
  /** All lines that were skipped; `skipped` holds only the first ones. */
  readonly skippedCount: number
}

export interface SkippedLine {
  readonly line: number
  readonly reason: string
}

/** A replay keeps every job's times in memory: some 200 bytes a job. */
export const TRACE_JOBS_MAX = 1_000_000

const SKIPPED_LINES_KEPT = 1_000
const HEADER_LINES_KEPT = 1_000

/** Reads at most `limit` usable jobs. Jobs are sorted by submission, because some logs are not. */
export async function readTrace(path: string, limit: number = TRACE_JOBS_MAX): Promise<Trace> {
  const jobs: SwfJob[] = []
  const header: string[] = []
  const skipped: SkippedLine[] = []
  let skippedCount = 0
  for await (const entry of readSwf(path)) {
    if (entry.type === 'job') jobs.push(entry.job)
    else if (entry.type === 'header') {
      if (header.length < HEADER_LINES_KEPT) header.push(entry.text)
    } else {
      skippedCount += 1
      if (skipped.length < SKIPPED_LINES_KEPT) skipped.push({ line: entry.line, reason: entry.reason })
    }
    if (jobs.length >= limit) break
  }
  const [first] = skipped
  if (jobs.length === 0) {
    const why = first ? `; line ${first.line}: ${first.reason}` : ''
    throw new WorkloadError(`${path} holds no job that can be replayed${why}`)
  }
  jobs.sort((a, b) => a.submitS - b.submitS)
  return { jobs, header, skipped, skippedCount }
}

const tenantOf = (job: SwfJob) => `user-${job.user}`

/** The jobs with all times divided by `factor`, and the first of them due at once. */
export function compress(trace: Trace, factor: number): Workload {
  const origin = trace.jobs[0]?.submitS ?? 0
  const compressed = (seconds: number) => (seconds * 1_000) / factor
  const jobs = trace.jobs.map(
    (job): WorkloadJob => ({
      tenant: tenantOf(job),
      dueMs: compressed(job.submitS - origin),
      durationMs: compressed(job.runS),
    }),
  )
  return { jobs, noisyTenants: busiestTenants(jobs) }
}

/** The rule by which a replay tells its two classes of tenants apart, for people. */
export const NOISY_RULE = 'noisy = the fewest tenants that together enqueued half of the jobs'

/**
 * The fewest tenants that together enqueued at least half of the jobs. In a log nobody is marked as noisy. Jobs are
 * counted, and not their run times, because that is what a turn of the fair claim is charged by.
 */
export function busiestTenants(jobs: readonly WorkloadJob[]): ReadonlySet<string> {
  const counts = new Map<string, number>()
  for (const { tenant } of jobs) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  const busiest = new Set<string>()
  let sum = 0
  for (const [tenant, count] of [...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))) {
    if (sum * 2 >= jobs.length) break
    busiest.add(tenant)
    sum += count
  }
  return busiest
}

/** What a replay should take, per strategy: two of them, a start and an end fit into about a minute. */
const RUN_TARGET_MS = 25_000

/** Arrivals that a small machine, which also runs the database and the handlers, keeps up with. */
const ARRIVALS_PER_SECOND = 200

/** What a job occupies its slot for besides its run time, on such a machine: its share of a claim, and settling. */
const OVERHEAD_MS = 4

/** How busy the slots should be on average: enough for backlogs to form, not so much that they never go. */
const UTILISATION = 0.8

/** A factor, to two digits, with which one run takes some 25 s, or longer when there are more than 5,000 jobs. */
export function suggestCompression(trace: Trace): number {
  const spanMs = spanOf(trace) * 1_000
  const targetMs = Math.max(RUN_TARGET_MS, (trace.jobs.length * 1_000) / ARRIVALS_PER_SECOND)
  return Math.max(1, Number((spanMs / targetMs).toPrecision(2)))
}

/** Slots, over all workers, that this workload keeps busy for about four fifths of the time. */
export function suggestSlots({ jobs }: Workload): number {
  const occupiedMs = jobs.reduce((sum, job) => sum + job.durationMs + OVERHEAD_MS, 0)
  return Math.max(1, Math.round(occupiedMs / UTILISATION / Math.max(1, jobs.at(-1)?.dueMs ?? 0)))
}

function spanOf(trace: Trace): number {
  return (trace.jobs.at(-1)?.submitS ?? 0) - (trace.jobs[0]?.submitS ?? 0)
}
