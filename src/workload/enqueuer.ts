import pg from 'pg'
import { delay, machineClockMs } from '../clock.js'
import type { Tenantry } from '../tenantry.js'
import type { Workload } from './workload.js'
import { workloadJob } from './workload-job.js'

/** Jobs that are enqueued in one transaction when many are due at once. */
const BATCH_MAX = 2_000

/** Node's timers fire at once when they are asked for more than 24 days. */
const WAIT_MS_MAX = 3_600_000

export interface EnqueuerOptions {
  readonly workload: Workload
  readonly tenantry: Tenantry
  readonly connectionString: string
  readonly queue: string
  /** Filled in: when each job was enqueued. */
  readonly enqueuedMs: Float64Array
  readonly signal: AbortSignal
}

/** Enqueues every job when it is due, in order. What is due at one moment goes into one transaction. */
export async function enqueueOnSchedule(options: EnqueuerOptions): Promise<void> {
  const { signal } = options
  const { jobs } = options.workload
  const session = new pg.Client({ connectionString: options.connectionString })
  // A session that breaks fails the statement that runs on it; the event must only not end the process.
  session.on('error', () => {})
  await session.connect()
  try {
    const originMs = machineClockMs()
    for (let next = 0; next < jobs.length && !signal.aborted; ) {
      const nowMs = machineClockMs() - originMs
      let end = next
      while (end < jobs.length && end - next < BATCH_MAX && (jobs[end]?.dueMs ?? 0) <= nowMs) end += 1
      if (end > next) await enqueueRange(options, session, { from: next, to: end })
      else await delay(Math.min((jobs[next]?.dueMs ?? 0) - nowMs, WAIT_MS_MAX), signal)
      next = end
    }
  } finally {
    await session.end()
  }
}

/** In a transaction of our own, so that the moment just before the commit can be noted: no job can start earlier. */
async function enqueueRange(
  { workload, tenantry, queue, enqueuedMs }: EnqueuerOptions,
  session: pg.Client,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const jobs = workload.jobs.slice(from, to).map(({ tenant, durationMs }, offset) => ({
    definition: workloadJob,
    payload: { index: from + offset, durationMs },
    tenant,
    queue,
  }))
  await session.query('begin')
  await tenantry.enqueueMany(jobs, { transaction: session })
  enqueuedMs.fill(machineClockMs(), from, to)
  await session.query('commit')
}
