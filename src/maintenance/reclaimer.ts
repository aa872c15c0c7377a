import { RECLAIM_LEASES_MAX } from '../limits.js'
import type { Random } from '../random.js'
import { Periodic, type Service } from '../service.js'
import type { Reclaimed, Store } from '../store/store.js'

/** Calls in one round. Each takes a bounded number of leases; the rest of a mass of them waits for the next round. */
const ROUNDS_MAX = 100

export interface ReclaimerOptions {
  readonly store: Pick<Store, 'reclaim'>
  /** The longest time between two rounds. Workers are spread over the last tenth of it, never beyond. */
  readonly intervalMs: number
  readonly random: Random
  readonly reclaimed: (reclaimed: Reclaimed) => void
  readonly succeeded: () => void
  readonly onError: (error: unknown) => void
}

/**
 * Returns the jobs of expired leases to their queues, or discards those that have used up their attempts. Every worker
 * does this for all queues: there is no leader whose failure could stop it, and the statement skips what another holds.
 */
export class Reclaimer implements Service {
  readonly #options: ReclaimerOptions
  readonly #periodic: Periodic
  #rounds = 0

  constructor(options: ReclaimerOptions) {
    this.#options = options
    this.#periodic = new Periodic({
      intervalMs: () => this.#waitMs(),
      run: (signal) => this.#run(signal),
      onError: options.onError,
    })
  }

  start(): Promise<void> {
    return this.#periodic.start()
  }

  stop(): Promise<void> {
    return this.#periodic.stop()
  }

  /** The first round comes at once: a worker often starts because another one has died. */
  #waitMs(): number {
    this.#rounds += 1
    return this.#rounds === 1 ? 0 : this.#options.intervalMs * (1 - 0.1 * this.#options.random.next())
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX && !signal.aborted; round += 1) {
      const reclaimed = await this.#options.store.reclaim()
      this.#options.succeeded()
      if (reclaimed.retried + reclaimed.discarded > 0) this.#options.reclaimed(reclaimed)
      // Not the jobs decide: the oldest leases may be empty, and those behind them not.
      if (reclaimed.leases < RECLAIM_LEASES_MAX) return
    }
  }
}
