import { systemRandom } from '../random.js'
import { Tenantry } from '../tenantry.js'
import type { HandlerStart } from '../workload/comparison.js'
import { type Distribution, distributionOf } from '../workload/statistics.js'
import { WorkerPool } from '../workload/worker-pool.js'
import { WorkloadError } from '../workload/workload.js'
import { workloadJob } from '../workload/workload-job.js'
import { HandlerStarts } from './handler-starts.js'

/** How soon a slot of a limit of one is used again. */
export interface SlotResult {
  /** What has the limit: one tenant, or one key that the jobs of several tenants share. */
  readonly limit: 'tenant' | 'key'
  readonly wakeUp: 'listen' | 'poll'
  readonly processes: number
  readonly samples: number
  /** From the end of a handler, before its job is settled, to the start of the next one, on whatever process. */
  readonly endToStartMs: Distribution
}

export type SlotVariant = Pick<SlotResult, 'limit' | 'wakeUp' | 'processes'>

/** By polling alone only the process that has freed the slot can know of it, so that is measured with one. */
export const SLOT_VARIANTS: readonly SlotVariant[] = [
  { limit: 'tenant', wakeUp: 'listen', processes: 1 },
  { limit: 'tenant', wakeUp: 'listen', processes: 2 },
  { limit: 'key', wakeUp: 'listen', processes: 1 },
  { limit: 'key', wakeUp: 'listen', processes: 2 },
  { limit: 'tenant', wakeUp: 'poll', processes: 1 },
]

/** Of each process: all but one have nothing to do. */
const SLOTS = 8

/** Long enough for every claim that follows a start to find nothing, and of no rhythm that a timer could have. */
const HANDLER_MS = { min: 5, max: 40 }

const KEY = 'one-at-a-time'

export interface SlotSampleOptions {
  readonly connectionString: string
  readonly schema: string
  readonly samples: number
  readonly signal: AbortSignal
  /** Rejects when the signal aborts. */
  readonly interrupted: Promise<never>
  readonly onSample: () => void
}

/** Runs a backlog of which only one job may run at a time, and measures the gaps between them. */
export async function sampleSlot(variant: SlotVariant, options: SlotSampleOptions): Promise<SlotResult> {
  const { connectionString, schema, samples, interrupted, onSample } = options
  const { limit, wakeUp, processes } = variant
  const queue = `slot-${limit}-${wakeUp}-${processes}`
  // The gaps are one less than the jobs.
  const starts = new HandlerStarts(samples + 1)
  await enqueueBacklog({ ...options, queue, limit })
  const pool = new WorkerPool({
    processes,
    start: { type: 'start', connectionString, schema, queue, concurrency: SLOTS, listen: wakeUp === 'listen' },
    onProgress: (progress) => {
      starts.add(progress)
      for (const _ of progress.starts) onSample()
    },
  })
  try {
    await Promise.race([pool.start(), interrupted])
    await Promise.race([starts.complete, pool.failure, interrupted])
    await pool.stop()
  } finally {
    await pool.kill()
  }
  const endToStartMs = distributionOf(gapsOf(starts.all))
  if (!endToStartMs) throw new RangeError('expected at least two jobs')
  return { ...variant, samples, endToStartMs }
}

async function enqueueBacklog(
  options: SlotSampleOptions & { readonly queue: string; readonly limit: SlotVariant['limit'] },
): Promise<void> {
  const { connectionString, schema, samples, queue, limit } = options
  await using tenantry = new Tenantry({ connectionString, schema })
  if (limit === 'tenant') await tenantry.configureTenant(queue, 'tenant-0', { concurrency: 1 })
  const jobs = Array.from({ length: samples + 1 }, (_, index) => ({
    definition: workloadJob,
    payload: { index, durationMs: HANDLER_MS.min + systemRandom.next() * (HANDLER_MS.max - HANDLER_MS.min) },
    queue,
    ...(limit === 'tenant' ? { tenant: 'tenant-0' } : { tenant: `tenant-${index % 3}`, key: KEY }),
  }))
  await tenantry.enqueueMany(jobs)
}

/** From each end to the start that follows. Two at once would be no matter of latency but a broken limit. */
export function gapsOf(starts: readonly HandlerStart[]): readonly number[] {
  const inOrder = starts.toSorted((a, b) => a.startedMs - b.startedMs)
  return inOrder.slice(1).map(({ index, startedMs }, place) => {
    const previous = inOrder[place] as HandlerStart
    if (startedMs >= previous.endedMs) return startedMs - previous.endedMs
    throw new WorkloadError(
      `jobs ${previous.index} and ${index} ran at the same time, with a limit of one; please report this as a bug`,
    )
  })
}
