import { aborted, type Clock } from '../clock.js'
import type { HeldJob, HeldLease } from '../lease/held-leases.js'
import { SETTLE_BACKLOG_MAX } from '../limits.js'
import type { Random } from '../random.js'
import type { Store } from '../store/store.js'
import type { Outcome } from './outcome.js'
import { isFinished, QueueCompleter } from './queue-completer.js'

/** What one statement of a flush did. */
export interface SettleEvent {
  readonly queue: string
  readonly durationMs: number
  readonly asked: number
  readonly accepted: number
  /** Fenced off: their lease had been lost. */
  readonly lost: number
  /** Refused by a repeated statement, because its first try had settled them and only the reply was lost, or lost. */
  readonly unconfirmed: number
}

/** What becomes of the settlements, told to the worker. */
export interface CompleterListener {
  settled(held: HeldJob, outcome: Outcome): void
  /** The lease was lost: whatever the handler did was not recorded. */
  lost(held: HeldJob): void
  /** Neither accepted nor certainly lost: a reply was lost and the repeated statement found the job gone. */
  unconfirmed(held: HeldJob): void
  /** The database refused the settlement for good; the job's lease is left to expire. */
  refused(held: HeldJob, error: unknown): void
  flushed(event: SettleEvent): void
  failed(queue: string, error: unknown): void
  recovered(queue: string): void
}

export interface CompleterOptions {
  readonly store: Pick<Store, 'settle'>
  readonly clock: Clock
  readonly random: Random
  readonly listener: CompleterListener
  /** Settled jobs that may wait to be written before claiming pauses. */
  readonly backlogMax?: number
}

/**
 * Writes the outcomes of finished attempts, many in one statement. A queue has one flush under way at a time and
 * whatever ends meanwhile goes with the next one, so the batches grow by themselves when the database is slow.
 *
 * A settlement leaves here in one of four ways: accepted, lost (fenced off by the lease id), unconfirmed, refused.
 */
export class Completer {
  readonly #options: CompleterOptions
  readonly #queues = new Map<string, QueueCompleter>()
  readonly #giveUp = new AbortController()
  readonly #backlogMax: number
  #backlog = 0
  readonly #waiting = new Set<() => void>()

  constructor(options: CompleterOptions) {
    this.#options = options
    this.#backlogMax = options.backlogMax ?? SETTLE_BACKLOG_MAX
  }

  /** Settlements that are not written yet. */
  get backlog(): number {
    return this.#backlog
  }

  /** `doubtful`: the job may be settled already, so it is no alarm when the database does not accept this. */
  add(held: HeldJob, outcome: Outcome, doubtful = false): void {
    this.#backlog += 1
    this.#queue(held.lease.queue).add(held, outcome, doubtful)
  }

  /** A job of the lease has ended elsewhere. When it was the last one, the lease's row is removed with the next flush. */
  finishIfEmpty(lease: HeldLease): void {
    if (!isFinished(lease)) return
    this.#queue(lease.queue).finishLease(lease.id)
  }

  /** Resolves once there is room for more jobs. Bounds the memory while the database accepts claims but no settles. */
  room(signal: AbortSignal): Promise<void> {
    if (this.#backlog < this.#backlogMax || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const finish = () => {
        signal.removeEventListener('abort', finish)
        this.#waiting.delete(finish)
        resolve()
      }
      signal.addEventListener('abort', finish, { once: true })
      this.#waiting.add(finish)
    })
  }

  /** Writes what there is without waiting for more. Gives up when `signal` aborts; answers how many were left. */
  async drain(signal: AbortSignal): Promise<number> {
    for (const queue of this.#queues.values()) queue.hurry()
    const finished = [...this.#queues.values()].map((queue) => queue.idle())
    await Promise.race([Promise.all(finished), aborted(signal)])
    return this.#backlog
  }

  /** Ends every retry. What is not written stays leased until the lease expires. */
  stop(): void {
    this.#giveUp.abort()
    for (const queue of this.#queues.values()) queue.stop()
  }

  #queue(name: string): QueueCompleter {
    const known = this.#queues.get(name)
    if (known) return known
    const queue = new QueueCompleter(name, {
      ...this.#options,
      giveUp: this.#giveUp.signal,
      concluded: (count) => this.#concluded(count),
    })
    this.#queues.set(name, queue)
    return queue
  }

  #concluded(count: number): void {
    this.#backlog -= count
    if (this.#backlog >= this.#backlogMax) return
    for (const finish of this.#waiting) finish()
  }
}
