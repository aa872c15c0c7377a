import { type Clock, delay } from '../clock.js'
import type { Service } from '../service.js'
import type { Store } from '../store/store.js'
import type { HeldLease, HeldLeases } from './held-leases.js'

/** The longest time between two looks at the clock, so that a lost lease and a blocked event loop are noticed soon. */
const TICK_MAX_MS = 1_000

export interface KeeperListener {
  /** The database says that these leases are gone; their handlers have been aborted. */
  lost(lease: HeldLease): void
  /** The lease could not be extended in time. Its handlers have been aborted, though the database may still honour it. */
  distrusted(lease: HeldLease): void
  /** Nothing else ran in this process for so long, heartbeats included. */
  blocked(blockedMs: number): void
  failed(error: unknown): void
  recovered(): void
}

export interface KeeperOptions {
  readonly store: Pick<Store, 'extend'>
  readonly leases: HeldLeases
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly clock: Clock
  readonly listener: KeeperListener
}

/**
 * Extends every lease that still has a job running or unsettled: one statement for all, every `heartbeatMs`, from the
 * start of the worker until the last settlement is written, so also while it drains.
 *
 * A lease ends here in one of two ways. *Lost*: the database has answered without it. *Distrusted*: no heartbeat got
 * through, and the database may give the jobs to another worker any moment; their handlers are aborted a bit earlier.
 * A distrusted lease is still extended: if nobody has reclaimed it meanwhile, the jobs can be settled after all.
 */
export class Keeper implements Service {
  readonly #options: KeeperOptions
  readonly #tickMs: number
  #stopped: AbortController | undefined
  #loop: Promise<void> | undefined
  /** When the heartbeat that is under way was sent. */
  #sentAtMs: number | undefined
  #nextBeatMs = 0
  #lastBeatFailed = false

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#tickMs = Math.min(TICK_MAX_MS, Math.max(1, options.heartbeatMs / 4))
  }

  async start(): Promise<void> {
    if (this.#loop) return
    this.#stopped = new AbortController()
    this.#loop = this.#run(this.#stopped.signal)
  }

  async stop(): Promise<void> {
    this.#stopped?.abort()
    await this.#loop
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, leaseMs, heartbeatMs, listener } = this.#options
    this.#nextBeatMs = clock.monotonicMs() + heartbeatMs
    while (!signal.aborted) {
      const expectedMs = clock.monotonicMs() + this.#tickMs
      await delay(this.#tickMs, signal)
      if (signal.aborted) return
      const lateMs = clock.monotonicMs() - expectedMs
      if (lateMs > leaseMs / 2) listener.blocked(lateMs)
      this.#tick()
    }
  }

  #tick(): void {
    const now = this.#options.clock.monotonicMs()
    if (this.#sentAtMs === undefined && now >= this.#nextBeatMs) this.#startBeat(now)
    this.#distrustOverdue(now)
  }

  #startBeat(now: number): void {
    const ids = this.#options.leases.ids
    this.#nextBeatMs = now + this.#options.heartbeatMs
    if (ids.length === 0) return
    this.#sentAtMs = now
    // Not awaited: the clock must be watched while the database is slow to answer. Neither callback throws.
    this.#options.store.extend(ids, this.#options.leaseMs).then(
      (kept) => this.#extended(ids, kept, now),
      (error: unknown) => this.#failed(error),
    )
  }

  #extended(ids: readonly string[], kept: ReadonlySet<string>, sentAtMs: number): void {
    const { leases, listener } = this.#options
    this.#sentAtMs = undefined
    this.#lastBeatFailed = false
    listener.recovered()
    for (const id of ids) {
      const lease = leases.get(id) // settled meanwhile: then it is rightly missing in the answer
      if (!lease) continue
      if (kept.has(id)) {
        leases.renew(lease, sentAtMs)
        continue
      }
      leases.lose(lease)
      listener.lost(lease)
    }
  }

  #failed(error: unknown): void {
    const { clock, heartbeatMs, listener } = this.#options
    this.#sentAtMs = undefined
    this.#lastBeatFailed = true
    // Sooner than the usual beat, so that more than one try fits into what is left of the lease.
    this.#nextBeatMs = clock.monotonicMs() + Math.min(heartbeatMs / 2, TICK_MAX_MS)
    listener.failed(error)
  }

  /**
   * After a blocked event loop the trust may be used up although no heartbeat has failed: then the next beat's answer
   * decides, since whatever the database would do has been done by now. Otherwise the handlers must stop in time.
   */
  #distrustOverdue(now: number): void {
    for (const lease of this.#options.leases.all) {
      if (lease.distrusted || now < lease.trustedUntilMs) continue
      const overdue = this.#sentAtMs !== undefined && this.#sentAtMs < lease.trustedUntilMs
      if (!this.#lastBeatFailed && !overdue) continue
      lease.distrust()
      this.#options.listener.distrusted(lease)
    }
  }
}
