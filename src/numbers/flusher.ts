import type { Clock } from '../clock.js'
import { jittered, type Random } from '../random.js'
import { Periodic, type Service } from '../service.js'
import type { NumbersStore } from '../store/numbers-store.js'
import type { Aggregator } from './aggregator.js'

/** How old the numbers may be, and how long a worker that was killed goes on being shown is a few times this. */
export const FLUSH_MS = 5_000

export interface FlusherOptions {
  readonly store: Pick<NumbersStore, 'beat' | 'record' | 'leave'>
  readonly aggregator: Aggregator
  readonly workerId: string
  readonly queues: readonly string[]
  readonly kinds: readonly string[]
  readonly slots: number
  /** Jobs that run now. */
  readonly running: () => number
  readonly clock: Clock
  readonly random: Random
  readonly succeeded: () => void
  readonly onError: (error: unknown) => void
}

/**
 * Tells the database every few seconds that this worker is there and what it has counted. A flush that fails is no loss: the
 * next one writes the whole again.
 */
export class Flusher implements Service {
  readonly #options: FlusherOptions
  readonly #periodic: Periodic
  readonly #startedAtMs: number
  #flushes = 0

  constructor(options: FlusherOptions) {
    this.#options = options
    this.#startedAtMs = options.clock.monotonicMs()
    this.#periodic = new Periodic({
      intervalMs: () => this.#waitMs(),
      run: () => this.#flush(),
      onError: options.onError,
    })
  }

  start(): Promise<void> {
    return this.#periodic.start()
  }

  /** Writes what is left and takes the worker off the list. Rejects when that fails: then it is taken off within a minute. */
  async stop(): Promise<void> {
    await this.#periodic.stop()
    if (this.#flushes === 0) return
    await this.#record()
    await this.#options.store.leave(this.#options.workerId)
  }

  /** The first one comes at once: a worker is there as soon as it has started. */
  #waitMs(): number {
    return this.#flushes === 0 ? 0 : jittered(FLUSH_MS, this.#options.random)
  }

  async #flush(): Promise<void> {
    const { store, aggregator, workerId, queues, kinds, slots, running, clock, succeeded } = this.#options
    this.#flushes += 1
    const sentAtMs = clock.monotonicMs()
    const presence = { workerId, queues, kinds, slots, running: running(), ageMs: sentAtMs - this.#startedAtMs }
    const databaseMs = await store.beat(presence)
    const now = clock.monotonicMs()
    // Half of the way there and back.
    aggregator.synchronize(databaseMs, (sentAtMs + now) / 2)
    await this.#record()
    succeeded()
  }

  async #record(): Promise<void> {
    const { store, aggregator, workerId, clock } = this.#options
    for (const { part, written } of aggregator.unwritten(clock.monotonicMs())) {
      await store.record(workerId, part)
      written()
    }
  }
}
