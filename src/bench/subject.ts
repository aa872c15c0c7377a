import type { Strategy } from '../settings/settings.js'

/** A queue that is measured: ours with one of its strategies, or the bare SQL. */
export interface Subject {
  readonly strategy: Strategy
  /** Creates the tables and all that lies around in them during every run. */
  prepare(): Promise<void>
  /** Sees to it that exactly so many jobs wait, in vacuumed tables. */
  load(jobs: number): Promise<void>
  /** One connection of a worker's. */
  connect(applicationName: string): Claimant
  count(): Promise<QueueCount>
  /** What autovacuum would do after a run. */
  vacuum(): Promise<void>
}

export interface QueueCount {
  readonly waiting: number
  readonly running: number
}

/** Claims and settles over one connection, as a worker does. */
export interface Claimant {
  claim(): Promise<Claimed>
  /** Completes all jobs of a claim; answers with the ids that were accepted. */
  settle(claimed: Claimed): Promise<ReadonlySet<string>>
  /** Sends what the server has counted for this session and not reported yet. */
  flushStatistics(): Promise<void>
  close(): Promise<void>
}

export interface Claimed {
  readonly jobIds: readonly string[]
  /** What the settling must show. */
  readonly fence: string
}
