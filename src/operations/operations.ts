import { type Clock, delay, systemClock } from '../clock.js'
import type { JobFilter } from '../job/filter.js'
import type { AdminStore } from '../store/admin-store.js'
import { inBatches } from './in-batches.js'
import {
  type CancelAllOptions,
  cancelAllOptions,
  type DrainOptions,
  drainOptions,
  type MoveOptions,
  moveOptions,
  type Occupancy,
  type PurgeOptions,
  purgeOptions,
  targetOption,
} from './options.js'

/** Jobs changed in one transaction: a few tens of milliseconds, for which nobody waits anyway. */
const BATCH = 1_000

/** Between two looks while something is waited for: short at first, since most handlers are, and never a burden. */
const POLL_MS_MIN = 25
const POLL_MS_MAX = 1_000

export async function cancelAll(store: AdminStore, queue: string, options: CancelAllOptions): Promise<number> {
  const { filter, reason, ...watch } = cancelAllOptions(options)
  return inBatches((cursor) => store.cancelBatch(queue, filter, { reason, limit: BATCH, cursor }), watch)
}

export async function purge(store: AdminStore, queue: string, options: PurgeOptions): Promise<number> {
  const { filter, history, ...watch } = purgeOptions(options)
  const waiting = await inBatches((cursor) => store.purgeBatch(queue, filter, { limit: BATCH, cursor }), watch)
  if (!history) return waiting
  const { onProgress, ...rest } = watch
  const shifted = onProgress && ((jobs: number) => onProgress(waiting + jobs))
  const ended = await inBatches((cursor) => store.purgeHistory(queue, filter, { limit: BATCH, cursor }), {
    ...rest,
    ...(shifted && { onProgress: shifted }),
  })
  return waiting + ended
}

export interface Move {
  readonly from: string
  readonly to: unknown
}

export async function moveJobs(store: AdminStore, { from, to }: Move, options: MoveOptions): Promise<number> {
  const { filter, ...watch } = moveOptions(options)
  const target = targetOption(from, to)
  return inBatches((cursor) => store.moveBatch({ from, to: target }, filter, { limit: BATCH, cursor }), watch)
}

/** False when the time was over first. */
export async function drain(
  store: AdminStore,
  queue: string,
  options: DrainOptions,
  clock: Clock = systemClock,
): Promise<boolean> {
  const { filter, until, timeoutMs, onProgress, signal } = drainOptions(options)
  const deadlineMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() + timeoutMs
  signal?.throwIfAborted()
  if (until === 'idle') await store.pause(queue, filter)
  for (let pollMs = POLL_MS_MIN; ; pollMs = Math.min(POLL_MS_MAX, pollMs * 2)) {
    const occupancy = await look(store, queue, filter)
    onProgress?.(occupancy)
    if (isDrained(occupancy, until)) return true
    const leftMs = deadlineMs - clock.monotonicMs()
    if (leftMs <= 0) return false
    await delay(Math.min(pollMs, leftMs), signal)
    signal?.throwIfAborted()
  }
}

/** A claim under way may start jobs that are not committed yet; so the last look comes after the end of it. */
async function look(store: AdminStore, queue: string, filter: JobFilter): Promise<Occupancy> {
  const occupancy = await store.occupancy(queue, filter)
  if (occupancy.running > 0) return occupancy
  await store.awaitClaim(queue)
  return store.occupancy(queue, filter)
}

function isDrained({ running, waiting }: Occupancy, until: 'idle' | 'empty'): boolean {
  return running === 0 && (until === 'idle' || waiting === 0)
}
