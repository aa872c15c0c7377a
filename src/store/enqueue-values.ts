import type { NewJob } from '../job/job.js'
import { ENQUEUE_STATEMENT_BYTES_MAX, ENQUEUE_STATEMENT_MAX } from '../limits.js'

/** Cuts jobs into what one statement carries, in their order. */
export function enqueueBatches(jobs: readonly NewJob[]): NewJob[][] {
  const batches: NewJob[][] = []
  let batch: NewJob[] = []
  let bytes = 0
  for (const job of jobs) {
    const own = Buffer.byteLength(job.payload)
    if (batch.length === ENQUEUE_STATEMENT_MAX || (batch.length > 0 && bytes + own > ENQUEUE_STATEMENT_BYTES_MAX)) {
      batches.push(batch)
      batch = []
      bytes = 0
    }
    batch.push(job)
    bytes += own
  }
  if (batch.length > 0) batches.push(batch)
  return batches
}

/** Queues, kinds, tenants, payloads, priorities, times, delays, attempts, keys. */
export function enqueueValues(jobs: readonly NewJob[]): unknown[] {
  return [
    jobs.map((job) => job.queue),
    jobs.map((job) => job.kind),
    jobs.map((job) => job.tenant),
    jobs.map((job) => job.payload),
    jobs.map((job) => job.priority),
    jobs.map((job) => job.runAt?.toISOString() ?? null),
    jobs.map((job) => job.delayMs ?? null),
    jobs.map((job) => job.maxAttempts),
    jobs.map((job) => job.key ?? null),
  ]
}
