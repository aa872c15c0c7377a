import type { Job, JobRecord, NewJob } from '../job/job.js'
import type { Settlement } from '../settle/outcome.js'

/** Anything with node-postgres's `query`: a Client, a PoolClient, a Pool, or a wrapper of one. */
export interface Queryable {
  query(config: {
    text: string
    values: unknown[]
    types?: { getTypeParser: () => (value: string) => unknown }
  }): Promise<{ rows: unknown[] }>
}

export interface ClaimRequest {
  readonly queue: string
  /** Chosen by the caller, random, never used twice: the fence, and the way to find a claim whose reply was lost. */
  readonly leaseId: string
  /** Who claims; for display. */
  readonly workerId: string
  readonly kinds: readonly string[]
  /** At most this many jobs, 1 to 500. */
  readonly count: number
  readonly leaseMs: number
  /** Ask to be notified while the queue has nothing for us. */
  readonly listening: boolean
  /** A poll of an idle queue: then the jobs are read in a second step, if there are any, so that it costs one statement. */
  readonly likelyEmpty?: boolean
}

export interface Claim {
  /** 0 to `count` jobs in the order in which they were picked; payloads are parsed JSON, not yet validated. */
  readonly jobs: readonly Job[]
  /** Whether jobs wait that a limit, a rate or a pause holds back: then a slot that becomes free lets one start. */
  readonly heldBack?: boolean
  /** Milliseconds until the next scheduled job of these kinds is due or a rate has a token; undefined when there is none or when the batch is full. */
  readonly nextDueMs?: number
}

export interface Reclaimed {
  /** Expired leases that were looked at; with as many as the limit of a call there may be more. */
  readonly leases: number
  /** Jobs that went back to their queue, with back-off. */
  readonly retried: number
  /** Jobs that had used up their attempts. */
  readonly discarded: number
  /** Milliseconds until the first of the retried ones is due. */
  readonly nextDueMs?: number
}

/** Every database operation of the runtime, in domain terms. */
export interface Store {
  /** Inserts all or none; ids in input order. Inside `transaction` it is the caller who commits. */
  enqueue(jobs: readonly NewJob[], transaction?: Queryable): Promise<string[]>
  /** Commits before it resolves. Rejects with a retryable error when a lock was not granted in time. */
  claim(request: ClaimRequest): Promise<Claim>
  /** The jobs that run under a lease; how a claim is recovered whose reply was lost. */
  claimed(leaseId: string): Promise<readonly Job[]>
  /** Prolongs leases; answers with those that are still held. The others were reclaimed. */
  extend(leaseIds: readonly string[], leaseMs: number): Promise<ReadonlySet<string>>
  /**
   * Settles jobs of one queue, each id at most once per call; answers with the ids that were accepted. An id that is
   * missing had lost its lease. `finishedLeases` are leases with no job left; their rows are removed.
   */
  settle(
    queue: string,
    settlements: readonly Settlement[],
    finishedLeases: readonly string[],
  ): Promise<ReadonlySet<string>>
  /** Completes one job inside the caller's transaction; false when its lease was lost. */
  completeIn(transaction: Queryable, queue: string, jobId: string, leaseId: string): Promise<boolean>
  /** Returns jobs of expired leases to their queues, or discards them; all queues, a bounded number per call. */
  reclaim(): Promise<Reclaimed>
  /** Creates history partitions ahead, drops those past retention, forgets idle tenants; bounded, safe to run anywhere. */
  maintain(): Promise<void>
  /** One job by id, hot or finished. */
  job(id: string): Promise<JobRecord | undefined>
}
