import { systemClock } from '../clock.js'
import type { Connection } from '../driver/connection.js'
import type { Job } from '../job/job.js'
import { Aggregator } from '../numbers/aggregator.js'
import { FLUSH_MS } from '../numbers/flusher.js'
import { NumbersStore } from '../store/numbers-store.js'

/** Counts and flushes what one connection claims and settles, as often as a worker does and on the connection of its claims. */
export class WorkerNumbers {
  readonly #aggregator = new Aggregator()
  readonly #store: NumbersStore
  readonly #presence: {
    readonly workerId: string
    readonly queues: readonly string[]
    readonly kinds: readonly string[]
  }
  readonly #running = new Map<string, Job>()
  #flushAtMs = 0

  constructor(
    connection: Connection,
    { schema, ...presence }: { schema: string; workerId: string; queues: readonly string[]; kinds: readonly string[] },
  ) {
    this.#store = new NumbersStore(connection, schema)
    this.#presence = presence
  }

  claimed(jobs: readonly Job[]): void {
    const now = systemClock.monotonicMs()
    for (const job of jobs) {
      this.#running.set(job.id, job)
      this.#aggregator.started(job, job.waitMs ?? 0, now)
      this.#aggregator.began(job, job, now)
    }
  }

  settled(jobIds: readonly string[]): void {
    const now = systemClock.monotonicMs()
    for (const id of jobIds) {
      const job = this.#running.get(id)
      if (!job) continue
      this.#running.delete(id)
      this.#aggregator.ended(job, now)
      this.#aggregator.settled(job, 'completed', now)
    }
  }

  async flushIfDue(): Promise<void> {
    const sentAtMs = systemClock.monotonicMs()
    if (sentAtMs < this.#flushAtMs) return
    this.#flushAtMs = sentAtMs + FLUSH_MS
    const presence = { ...this.#presence, slots: 50, running: this.#running.size, ageMs: 0 }
    this.#aggregator.synchronize(await this.#store.beat(presence), sentAtMs)
    for (const { part, written } of this.#aggregator.unwritten(systemClock.monotonicMs())) {
      await this.#store.record(presence.workerId, part)
      written()
    }
  }
}
