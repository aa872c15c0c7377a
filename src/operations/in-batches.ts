import { delay } from '../clock.js'
import { classify } from '../driver/pg-errors.js'
import type { Batch } from '../store/admin-store.js'

/** How an operation on many jobs is watched and cut short. */
export interface ProgressOptions {
  /** Called after each batch, with how many jobs were changed so far. */
  readonly onProgress?: (jobs: number) => void
  /** Stops between two batches: the promise rejects with its reason, and what was changed stays changed. */
  readonly signal?: AbortSignal
}

/** Times that a batch is sent again when somebody else was in the way. It starts where the last one stopped, so nothing is done twice. */
const RETRIES_MAX = 3

const RETRY_MS = 500

/** Runs batch after batch, each a transaction of its own, until one says that nothing is left. Answers with how many jobs were changed. */
export async function inBatches(
  run: (cursor: string | undefined) => Promise<Batch>,
  { onProgress, signal }: ProgressOptions,
): Promise<number> {
  let changed = 0
  let cursor: string | undefined
  do {
    signal?.throwIfAborted()
    const batch = await persistently(() => run(cursor), signal)
    changed += batch.changed
    cursor = batch.cursor
    onProgress?.(changed)
  } while (cursor !== undefined)
  return changed
}

async function persistently<Result>(run: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await run()
    } catch (error) {
      if (failures > RETRIES_MAX || classify(error) !== 'retryable') throw error
      await delay(RETRY_MS, signal)
      signal?.throwIfAborted()
    }
  }
}
