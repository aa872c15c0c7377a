import { LeaseLostError } from '../errors.js'
import type { Job } from '../job/job.js'

/** One job in this process, from its claim until it is settled. */
export interface HeldJob {
  /** Without payload and errors once its handler has ended. */
  job: Job
  readonly lease: HeldLease
  /** Aborts the handler: the lease was lost, the job's time is over, or the worker shuts down. */
  readonly abort: AbortController
}

/** One claim. It stays here until the last of its jobs is settled, and for so long its lease is extended. */
export class HeldLease {
  readonly id: string
  readonly queue: string
  readonly #jobs = new Map<string, HeldJob>()
  /** Monotonic time until which the database certainly honours the lease. */
  #trustedUntilMs: number
  #lost = false
  #distrusted = false
  #refused = false

  constructor(id: string, queue: string, trustedUntilMs: number) {
    this.id = id
    this.queue = queue
    this.#trustedUntilMs = trustedUntilMs
  }

  get trustedUntilMs(): number {
    return this.#trustedUntilMs
  }

  /** The database has said that the lease is gone. Nothing of it can be settled any more. */
  get lost(): boolean {
    return this.#lost
  }

  /** It could not be extended in time, so the database may have given its jobs away. Only the fence knows. */
  get distrusted(): boolean {
    return this.#distrusted
  }

  /** The database refuses the outcome of one of its jobs. The row is left to expire, so that the job is reclaimed. */
  get refused(): boolean {
    return this.#refused
  }

  /** Jobs that are running or wait for their settlement to be written. */
  get size(): number {
    return this.#jobs.size
  }

  get jobs(): Iterable<HeldJob> {
    return this.#jobs.values()
  }

  add(job: Job): HeldJob {
    const held = { job, lease: this, abort: new AbortController() }
    this.#jobs.set(job.id, held)
    return held
  }

  remove(jobId: string): void {
    this.#jobs.delete(jobId)
  }

  trustUntil(monotonicMs: number): void {
    this.#trustedUntilMs = monotonicMs
  }

  lose(): void {
    this.#lost = true
    this.#abortJobs('raise leaseMs, or make the handler yield to the event loop more often')
  }

  distrust(): void {
    this.#distrusted = true
    this.#abortJobs('the database could not be reached in time to extend it')
  }

  refuse(): void {
    this.#refused = true
  }

  #abortJobs(detail: string): void {
    for (const { job, abort } of this.#jobs.values()) abort.abort(new LeaseLostError(job.id, detail))
  }
}

/**
 * How much earlier than the database we stop trusting a lease, so that handlers which obey their signal have ended
 * before another worker starts the job again. The time is counted from before the statement was sent.
 */
export function trustWindowMs(leaseMs: number): number {
  return leaseMs - Math.min(1_000, leaseMs / 10)
}

/** All leases of a worker. */
export class HeldLeases {
  readonly #leases = new Map<string, HeldLease>()
  readonly #leaseMs: number

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** `sentAtMs` is the monotonic time before the claim was sent: the database cannot have granted the lease earlier. */
  hold(claim: { leaseId: string; queue: string; jobs: readonly Job[]; sentAtMs: number }): HeldLease {
    const lease = new HeldLease(claim.leaseId, claim.queue, claim.sentAtMs + trustWindowMs(this.#leaseMs))
    for (const job of claim.jobs) lease.add(job)
    if (lease.size > 0) this.#leases.set(lease.id, lease)
    return lease
  }

  get(leaseId: string): HeldLease | undefined {
    return this.#leases.get(leaseId)
  }

  get all(): Iterable<HeldLease> {
    return this.#leases.values()
  }

  get ids(): string[] {
    return [...this.#leases.keys()]
  }

  /** The job is settled, or is not ours any more. The lease goes with its last job. */
  drop(held: HeldJob): void {
    held.lease.remove(held.job.id)
    if (held.lease.size === 0) this.#leases.delete(held.lease.id)
  }

  /** The database has extended the lease by a statement that was sent at `sentAtMs`. */
  renew(lease: HeldLease, sentAtMs: number): void {
    lease.trustUntil(sentAtMs + trustWindowMs(this.#leaseMs))
  }

  /** The database has said that the lease is gone: its handlers are told, its settlements will be dropped. */
  lose(lease: HeldLease): void {
    lease.lose()
    this.#leases.delete(lease.id)
  }
}
