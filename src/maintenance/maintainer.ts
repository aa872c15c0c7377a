import { jittered, type Random } from '../random.js'
import { Periodic, type Service } from '../service.js'
import type { NumbersStore } from '../store/numbers-store.js'
import type { Store } from '../store/store.js'

/** History partitions are made days ahead and nothing else here is urgent, so once in this time is plenty. */
const INTERVAL_MS = 5 * 60_000

export interface MaintainerOptions {
  readonly store: Pick<Store, 'maintain'>
  readonly numbers: Pick<NumbersStore, 'prune'>
  readonly random: Random
  readonly succeeded: () => void
  readonly onError: (error: unknown) => void
}

/** Housekeeping of the tables: history partitions, retention, tenants that have gone idle. Any worker may do it. */
export class Maintainer implements Service {
  readonly #options: MaintainerOptions
  readonly #periodic: Periodic
  #runs = 0

  constructor(options: MaintainerOptions) {
    this.#options = options
    this.#periodic = new Periodic({
      intervalMs: () => this.#waitMs(),
      run: () => this.#run(),
      onError: options.onError,
    })
  }

  start(): Promise<void> {
    return this.#periodic.start()
  }

  stop(): Promise<void> {
    return this.#periodic.stop()
  }

  #waitMs(): number {
    this.#runs += 1
    return this.#runs === 1 ? 0 : jittered(INTERVAL_MS, this.#options.random)
  }

  async #run(): Promise<void> {
    await this.#options.store.maintain()
    await this.#options.numbers.prune()
    this.#options.succeeded()
  }
}
