import { Heap, type Slotted } from './heap.js'
import type { Lane } from './lane.js'

/** `blocked`: due, and its key is used up by others. */
export type JobStanding = 'scheduled' | 'blocked' | 'available' | 'running' | 'gone'

/** A job as far as the order of starts depends on it. */
export interface Job extends Slotted {
  readonly id: number
  readonly lane: Lane
  readonly key: string | undefined
  readonly priority: number
  readonly maxAttempts: number
  standing: JobStanding
  attempt: number
  runAtMs: number
  /** The order within a tenant: a point of priority is worth a minute of waiting. */
  orderAtMs: number
  claimedAtMs: number | undefined
  /** Seconds for which its tenant was charged when it was claimed. */
  charged: number
}

export const PRIORITY_POINT_MS = 60_000

/** The one order within a tenant, and within a key. */
export function comesBefore(one: Job, other: Job): boolean {
  return one.orderAtMs < other.orderAtMs || (one.orderAtMs === other.orderAtMs && one.id < other.id)
}

/** What a lane has, or what waits for a key. */
export function orderedJobs(): Heap<Job> {
  return new Heap(comesBefore)
}

/** Jobs by the time at which they are due. */
export function dueJobs(): Heap<Job> {
  return new Heap((one, other) => one.runAtMs < other.runAtMs || (one.runAtMs === other.runAtMs && one.id < other.id))
}
