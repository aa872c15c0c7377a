import { unreachable } from '../assert.js'
import { delay } from '../clock.js'
import { isLockTimeout } from '../driver/pg-errors.js'
import type { HeldJob, HeldLease } from '../lease/held-leases.js'
import { SETTLE_BATCH_MAX } from '../limits.js'
import { jittered } from '../random.js'
import { backOffMs } from '../service.js'
import type { CompleterOptions } from './completer.js'
import type { Outcome } from './outcome.js'
import { isRefusal } from './refusal.js'

/** How long an outcome waits for company. Well below what anybody notices, and enough for dozens on a busy worker. */
const FLUSH_DELAY_MS = 5

const RETRY = { minMs: 100, maxMs: 5_000 }

/** Between two tries of locked rows. Each waits for the lock as long as the SQL allows, and other outcomes behind it. */
const LOCKED_WAIT_MS = 10_000

interface Pending {
  readonly held: HeldJob
  readonly outcome: Outcome
  /** A statement with this settlement failed, but may have been carried out. */
  unconfirmed: boolean
  /** The outcome's text was replaced because the database refused it. */
  readonly plain: boolean
}

export interface QueueCompleterOptions extends CompleterOptions {
  /** Ends every wait and retry. */
  readonly giveUp: AbortSignal
  readonly concluded: (count: number) => void
}

/** The settlements of one queue: `Completer` has one of these for each. */
export class QueueCompleter {
  readonly #queue: string
  readonly #options: QueueCompleterOptions
  readonly #pending: Pending[] = []
  /** Batches with a job whose row somebody else has locked. */
  readonly #blocked: (readonly Pending[])[] = []
  #unblocking: Promise<void> | undefined
  readonly #hurry = new AbortController()
  #finishedLeases: string[] = []
  #timer: NodeJS.Timeout | undefined
  #flush: Promise<void> | undefined

  constructor(queue: string, options: QueueCompleterOptions) {
    this.#queue = queue
    this.#options = options
  }

  add(held: HeldJob, outcome: Outcome, doubtful: boolean): void {
    this.#pending.push({ held, outcome, unconfirmed: doubtful, plain: false })
    this.#plan()
  }

  finishLease(leaseId: string): void {
    this.#finishedLeases.push(leaseId)
    this.#plan()
  }

  /** From now on nothing waits for company. */
  hurry(): void {
    this.#hurry.abort()
    this.#plan()
  }

  async idle(): Promise<void> {
    while (this.#flush || this.#unblocking) await Promise.all([this.#flush, this.#unblocking])
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#hurry.abort()
  }

  #plan(): void {
    if (this.#flush || this.#options.giveUp.aborted) return
    if (this.#pending.length === 0 && this.#finishedLeases.length === 0) return
    if (this.#hurry.signal.aborted || this.#pending.length >= SETTLE_BATCH_MAX) this.#startFlush()
    else this.#timer ??= setTimeout(() => this.#startFlush(), FLUSH_DELAY_MS)
  }

  #startFlush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flush = this.#settle(takeBatch(this.#pending), this.#finishedLeases.splice(0)).then(() => {
      this.#flush = undefined
      this.#plan()
    })
  }

  /** Tries until the database has answered. Only it knows whether a lease still holds, so nothing is given up earlier. */
  async #settle(batch: readonly Pending[], finishedLeases: readonly string[]): Promise<void> {
    let live = batch
    for (let failures = 0; !this.#options.giveUp.aborted; failures += 1) {
      live = this.#withoutLost(live)
      if (live.length === 0 && finishedLeases.length === 0) return
      const error = await this.#attempt(live, finishedLeases)
      if (error === undefined) return
      if (isRefusal(error, failures + 1)) {
        // Without a job it is the leases that are refused: their rows are left to expire.
        if (live.length > 0) this.#finishedLeases.push(...finishedLeases)
        return this.#isolate(live, error)
      }
      // Whatever the error says: only the reply may be lost, or the statement may have been carried out in part.
      for (const pending of live) pending.unconfirmed = true
      if (isLockTimeout(error) && live.length > 0) {
        this.#finishedLeases.push(...finishedLeases)
        return this.#setApart(live)
      }
      const waitMs = backOffMs(failures + 1, RETRY)
      await delay(jittered(waitMs, this.#options.random), this.#options.giveUp)
    }
  }

  /** Out of the way of the others: one row that is locked for an hour must not hold up all jobs of the queue. */
  #setApart(batch: readonly Pending[]): void {
    this.#blocked.push(batch)
    this.#startUnblocking()
  }

  #startUnblocking(): void {
    if (this.#blocked.length === 0 || this.#options.giveUp.aborted) return
    this.#unblocking ??= this.#unblock().then(() => {
      this.#unblocking = undefined
      // What was set apart just when the last one had ended.
      this.#startUnblocking()
    })
  }

  /** Halves what is blocked until only locked rows are left, and tries those again from time to time. */
  async #unblock(): Promise<void> {
    const locked: Pending[] = []
    while (!this.#options.giveUp.aborted) {
      const batch = this.#blocked.pop()
      if (batch && batch.length > 1) {
        const middle = batch.length >> 1
        await this.#settle(batch.slice(0, middle), [])
        await this.#settle(batch.slice(middle), [])
      } else if (batch) {
        locked.push(...batch)
      } else if (locked.length > 0) {
        await delay(jittered(LOCKED_WAIT_MS, this.#options.random), this.#hurry.signal)
        await this.#settle(takeBatch(locked), [])
      } else return
    }
  }

  /** One statement. Answers with the error if it failed. */
  async #attempt(batch: readonly Pending[], finishedLeases: readonly string[]): Promise<unknown> {
    const { store, clock, listener } = this.#options
    const settlements = batch.map(({ held, outcome }) => ({ jobId: held.job.id, leaseId: held.lease.id, outcome }))
    const leases = new Set([...finishedLeases, ...finishedBy(batch)])
    const startedMs = clock.monotonicMs()
    let accepted: ReadonlySet<string>
    try {
      accepted = await store.settle(this.#queue, settlements, [...leases])
    } catch (error) {
      listener.failed(this.#queue, error)
      return error ?? new Error('the store rejected without a reason')
    }
    listener.recovered(this.#queue)
    this.#conclude(batch, accepted, clock.monotonicMs() - startedMs)
    this.#finishEmptied(batch, leases)
    return undefined
  }

  #conclude(batch: readonly Pending[], accepted: ReadonlySet<string>, durationMs: number): void {
    const counts = { accepted: 0, lost: 0, unconfirmed: 0 }
    for (const pending of batch) counts[this.#report(pending, accepted)] += 1
    this.#options.listener.flushed({ queue: this.#queue, durationMs, asked: batch.length, ...counts })
    this.#options.concluded(batch.length)
  }

  /** A lease may have lost its other jobs while the statement was under way, which therefore did not name it. */
  #finishEmptied(batch: readonly Pending[], named: ReadonlySet<string>): void {
    for (const lease of new Set(batch.map(({ held }) => held.lease))) {
      if (isFinished(lease) && !named.has(lease.id)) this.finishLease(lease.id)
    }
  }

  #report({ held, outcome, unconfirmed }: Pending, accepted: ReadonlySet<string>): 'accepted' | 'lost' | 'unconfirmed' {
    const { listener } = this.#options
    if (accepted.has(held.job.id)) {
      listener.settled(held, outcome)
      return 'accepted'
    }
    // After a lost reply the job may be missing because the first try had settled it: no reason to raise an alarm.
    if (unconfirmed) listener.unconfirmed(held)
    else listener.lost(held)
    return unconfirmed ? 'unconfirmed' : 'lost'
  }

  /** What the database has meanwhile called lost need not be sent. */
  #withoutLost(batch: readonly Pending[]): readonly Pending[] {
    const lost = batch.filter(({ held }) => held.lease.lost)
    if (lost.length === 0) return batch
    for (const pending of lost) this.#report(pending, new Set())
    this.#options.concluded(lost.length)
    return batch.filter(({ held }) => !held.lease.lost)
  }

  /**
   * The database refuses a value in the batch, and would for ever. Halving finds the one, so that its neighbours are
   * settled; that one is tried once more with plain text and is then left to the expiry of its lease.
   */
  async #isolate(batch: readonly Pending[], error: unknown): Promise<void> {
    const [first, ...others] = batch
    if (!first) return
    if (others.length > 0) {
      const middle = batch.length >> 1
      await this.#settle(batch.slice(0, middle), [])
      return this.#settle(batch.slice(middle), [])
    }
    const outcome = first.plain ? undefined : plainOutcome(first.outcome)
    if (outcome) return this.#settle([{ ...first, outcome, plain: true }], [])
    this.#options.listener.refused(first.held, error)
    this.#options.concluded(1)
  }
}

/** Takes the next batch out of the list. A job that was lost and claimed again here may be in it twice; its id goes in once. */
function takeBatch(list: Pending[]): Pending[] {
  const batch = new Map<string, Pending>()
  const rest: Pending[] = []
  for (const pending of list) {
    const { id } = pending.held.job
    if (batch.size < SETTLE_BATCH_MAX && !batch.has(id)) batch.set(id, pending)
    else rest.push(pending)
  }
  list.splice(0, list.length, ...rest)
  return [...batch.values()]
}

/** Leases whose last jobs are in this batch. One with a refused outcome is left to expire, or its job would never be reclaimed. */
function finishedBy(batch: readonly Pending[]): string[] {
  const counts = new Map<HeldLease, number>()
  for (const { held } of batch) counts.set(held.lease, (counts.get(held.lease) ?? 0) + 1)
  return [...counts].filter(([lease, count]) => count === lease.size && !lease.refused).map(([lease]) => lease.id)
}

/** Nothing of it runs or waits to be settled, and its row is of no more use. */
export function isFinished(lease: HeldLease): boolean {
  return lease.size === 0 && !lease.lost && !lease.refused
}

/** The same outcome without the text that came from the handler. Undefined when there is none in it. */
function plainOutcome(outcome: Outcome): Outcome | undefined {
  const failure = { name: 'Error', message: 'the failure could not be stored: the database refused its text' }
  switch (outcome.type) {
    case 'retry':
    case 'discard':
      return { ...outcome, failure }
    case 'cancel':
      return { ...outcome, reason: 'the reason could not be stored: the database refused its text' }
    case 'complete':
    case 'snooze':
    case 'release':
      return undefined
    default:
      return unreachable(outcome)
  }
}
