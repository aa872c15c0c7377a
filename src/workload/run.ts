import { Tenantry } from '../tenantry.js'
import type { RunRecord } from './comparison.js'
import { enqueueOnSchedule } from './enqueuer.js'
import { RunRecorder } from './run-recorder.js'
import { WorkerPool } from './worker-pool.js'
import type { Workload } from './workload.js'

export interface RunOptions {
  readonly workload: Workload
  readonly strategy: 'fifo' | 'fair'
  /** Default: the name of the strategy. Nobody else's. */
  readonly queue?: string
  readonly connectionString: string
  /** Migrated, and nobody else's. */
  readonly schema: string
  readonly processes: number
  /** Slots of each process. */
  readonly concurrency: number
  readonly signal: AbortSignal
  /** Called with the positions of jobs whose handlers have ended. */
  readonly onEnded?: (indices: readonly number[]) => void
}

/**
 * Runs a workload through one strategy, in a queue of its own. The worker processes are ready before the first job is
 * enqueued, and what is due at one moment is enqueued in one transaction: so everything that happens afterwards is
 * decided by the claims and not by who was up first.
 */
export async function runWorkload(options: RunOptions): Promise<RunRecord> {
  const { workload, strategy, queue = strategy, connectionString, schema } = options
  const recorder = new RunRecorder(workload, options.onEnded)
  await using tenantry = new Tenantry({ connectionString, schema })
  await tenantry.configureQueue(queue, { strategy })
  options.signal.throwIfAborted()
  const pool = new WorkerPool({
    processes: options.processes,
    start: { type: 'start', connectionString, schema, queue, concurrency: options.concurrency },
    onProgress: (progress) => recorder.add(progress),
  })
  // Aborts when the run is over, however it ended, so that no part of it goes on alone.
  const over = new AbortController()
  const signal = AbortSignal.any([options.signal, over.signal])
  const interrupted = rejectionOf(options.signal)
  const unlessBroken = <T>(step: Promise<T>) => Promise.race([step, pool.failure, interrupted])
  let enqueuing: Promise<void> | undefined
  try {
    await unlessBroken(pool.start())
    const { enqueuedMs } = recorder
    enqueuing = enqueueOnSchedule({ workload, tenantry, connectionString, queue, enqueuedMs, signal })
    await unlessBroken(enqueuing)
    await unlessBroken(recorder.settled(signal))
    await unlessBroken(pool.stop())
  } finally {
    over.abort()
    await Promise.allSettled([pool.kill(), enqueuing])
  }
  return recorder.record()
}

/** Rejects with the reason of the signal once it aborts. */
export function rejectionOf(signal: AbortSignal): Promise<never> {
  const rejection = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  // It may abort when nobody waits any more.
  rejection.catch(() => {})
  return rejection
}
