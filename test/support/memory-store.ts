import { type Clock, systemClock } from '../../src/clock.js'
import type { AttemptError, Job, JobRecord, JobState, NewJob } from '../../src/job/job.js'
import type { Outcome, Settlement } from '../../src/settle/outcome.js'
import type { Claim, ClaimRequest, Reclaimed, Store } from '../../src/store/store.js'

interface Row {
  job: Job
  state: JobState
  dueMs: number
  leaseId: string | undefined
  finalizedMs: number | undefined
}

/**
 * A store without a database, for tests of the runtime in virtual time: first in, first out, with leases and fences
 * as the real one has them. What it does not have is everything that makes the real one interesting.
 */
export class MemoryStore implements Store {
  readonly #clock: Clock
  readonly #rows = new Map<string, Row>()
  readonly #leases = new Map<string, number>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  async enqueue(jobs: readonly NewJob[]): Promise<string[]> {
    return jobs.map((job) => {
      const id = String(this.#rows.size + 1)
      const { queue, kind, tenant, priority, maxAttempts } = job
      const at = this.#clock.wallClock()
      const payload: unknown = JSON.parse(job.payload)
      this.#rows.set(id, {
        job: {
          id,
          queue,
          kind,
          tenant,
          payload,
          priority,
          maxAttempts,
          attempt: 0,
          runAt: at,
          createdAt: at,
          errors: [],
        },
        state: 'available',
        dueMs: this.#nowMs() + (job.delayMs ?? 0),
        leaseId: undefined,
        finalizedMs: undefined,
      })
      return id
    })
  }

  async claim({ queue, leaseId, kinds, count, leaseMs }: ClaimRequest): Promise<Claim> {
    const waiting = [...this.#rows.values()].filter(
      ({ state, job }) => state === 'available' && job.queue === queue && kinds.includes(job.kind),
    )
    const picked = waiting.filter(({ dueMs }) => dueMs <= this.#nowMs()).slice(0, count)
    for (const row of picked) {
      row.state = 'running'
      row.leaseId = leaseId
      row.job = { ...row.job, attempt: row.job.attempt + 1 }
    }
    if (picked.length > 0) this.#leases.set(leaseId, this.#nowMs() + leaseMs)
    const jobs = picked.map(({ job }) => job)
    const later = waiting.filter((row) => !picked.includes(row)).map(({ dueMs }) => dueMs - this.#nowMs())
    return picked.length < count && later.length > 0 ? { jobs, nextDueMs: Math.min(...later) } : { jobs }
  }

  async claimed(leaseId: string): Promise<readonly Job[]> {
    return [...this.#rows.values()].filter((row) => row.leaseId === leaseId).map(({ job }) => job)
  }

  async extend(leaseIds: readonly string[], leaseMs: number): Promise<ReadonlySet<string>> {
    const held = leaseIds.filter((id) => this.#leases.has(id))
    for (const id of held) this.#leases.set(id, this.#nowMs() + leaseMs)
    return new Set(held)
  }

  async settle(
    queue: string,
    settlements: readonly Settlement[],
    finishedLeases: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const accepted = settlements.filter(({ jobId, leaseId, outcome }) => {
      const row = this.#rows.get(jobId)
      if (row?.leaseId !== leaseId || row.job.queue !== queue) return false
      this.#apply(row, outcome)
      return true
    })
    for (const id of finishedLeases) {
      if (![...this.#rows.values()].some((row) => row.leaseId === id)) this.#leases.delete(id)
    }
    return new Set(accepted.map(({ jobId }) => jobId))
  }

  async completeIn(_transaction: unknown, queue: string, jobId: string, leaseId: string): Promise<boolean> {
    return (await this.settle(queue, [{ jobId, leaseId, outcome: { type: 'complete' } }], [])).size === 1
  }

  async reclaim(): Promise<Reclaimed> {
    const reclaimed = { leases: 0, retried: 0, discarded: 0 }
    for (const [leaseId, expiresMs] of this.#leases) {
      if (expiresMs > this.#nowMs()) continue
      this.#leases.delete(leaseId)
      for (const row of this.#rows.values()) {
        if (row.leaseId !== leaseId) continue
        const failure = { name: 'LeaseExpired', message: 'the worker stopped extending its lease' }
        const again = row.job.attempt < row.job.maxAttempts
        this.#apply(row, again ? { type: 'retry', delayMs: 0, failure } : { type: 'discard', failure })
        reclaimed[again ? 'retried' : 'discarded'] += 1
      }
    }
    return reclaimed.retried > 0 ? { ...reclaimed, nextDueMs: 0 } : reclaimed
  }

  async maintain(): Promise<void> {}

  async job(id: string): Promise<JobRecord | undefined> {
    const row = this.#rows.get(id)
    return row && { ...row.job, state: row.state }
  }

  /** How many jobs are in a state. */
  count(state: JobState): number {
    return [...this.#rows.values()].filter((row) => row.state === state).length
  }

  get leases(): number {
    return this.#leases.size
  }

  get leaseIds(): readonly string[] {
    return [...this.#leases.keys()]
  }

  /** As if the lease had run out and the jobs had been reclaimed. */
  expire(leaseId: string): void {
    this.#leases.set(leaseId, Number.NEGATIVE_INFINITY)
  }

  #apply(row: Row, outcome: Outcome): void {
    const { job } = row
    row.leaseId = undefined
    if ('failure' in outcome) {
      const at = this.#clock.wallClock().toISOString()
      const error: AttemptError = { attempt: job.attempt, at, ...outcome.failure }
      row.job = { ...job, errors: [...job.errors, error] }
    }
    if (outcome.type === 'snooze' || outcome.type === 'release') row.job = { ...job, attempt: job.attempt - 1 }
    const final = { complete: 'completed', cancel: 'cancelled', discard: 'discarded' } as const
    row.state = outcome.type in final ? final[outcome.type as keyof typeof final] : 'available'
    row.dueMs = this.#nowMs() + ('delayMs' in outcome ? outcome.delayMs : 0)
  }

  #nowMs(): number {
    return this.#clock.monotonicMs()
  }
}
