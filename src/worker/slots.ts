import type { Clock } from '../clock.js'

/**
 * Slots that free up within this time are claimed together. A claim takes the queue's lock for about 0.4 ms whatever
 * it brings, so ten claims of one job keep other workers waiting ten times as long as one claim of ten.
 */
const GATHER_MS = 3

interface Waiter {
  readonly want: number
  readonly resolve: (granted: number) => void
}

/**
 * The worker's concurrency. A claim reserves slots before it is sent and keeps one for each job that it brought, so
 * that no more jobs are claimed than can start at once: attempts count at claim, and a crash must not use up attempts
 * of jobs that never started.
 *
 * Several queues share the slots. They wait in line, and whoever is at the head gets an even share of what is free;
 * so a queue with a deep backlog cannot keep the others out.
 */
export class Slots {
  readonly #capacity: number
  readonly #clock: Clock
  readonly #waiters: Waiter[] = []
  #free: number
  /** When the first slot of the present burst was freed. */
  #burstStartMs = Number.NEGATIVE_INFINITY
  #gathering: NodeJS.Timeout | undefined

  constructor(capacity: number, clock: Clock) {
    this.#capacity = capacity
    this.#clock = clock
    this.#free = capacity
  }

  get taken(): number {
    return this.#capacity - this.#free
  }

  /** Reserves 1 to `want` slots as soon as there are any. Answers 0 when `signal` aborts first. */
  reserve(want: number, signal: AbortSignal): Promise<number> {
    if (signal.aborted) return Promise.resolve(0)
    return new Promise((resolve) => {
      const cancel = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        resolve(0)
      }
      const waiter: Waiter = {
        want,
        resolve: (granted) => {
          signal.removeEventListener('abort', cancel)
          resolve(granted)
        },
      }
      signal.addEventListener('abort', cancel, { once: true })
      this.#waiters.push(waiter)
      this.#grant()
    })
  }

  /** A claim brought fewer jobs than slots were reserved for it. */
  unreserve(count: number): void {
    this.#free += count
    this.#grant()
  }

  /** A job has ended. */
  free(): void {
    this.#free += 1
    const now = this.#clock.monotonicMs()
    if (now - this.#burstStartMs >= GATHER_MS) this.#burstStartMs = now
    this.#grant()
  }

  #grant(): void {
    while (this.#free > 0) {
      const [waiter] = this.#waiters
      if (!waiter || this.#gatherMore()) return
      this.#waiters.shift()
      const share = Math.ceil(this.#free / (this.#waiters.length + 1))
      const granted = Math.min(waiter.want, share)
      this.#free -= granted
      waiter.resolve(granted)
    }
  }

  /** Whether it pays to wait for more slots: a burst has just begun, and fewer than half of the slots are free. */
  #gatherMore(): boolean {
    const waitMs = this.#burstStartMs + GATHER_MS - this.#clock.monotonicMs()
    if (this.#free * 2 >= this.#capacity || waitMs <= 0) return false
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      this.#burstStartMs = Number.NEGATIVE_INFINITY
      this.#grant()
    }, waitMs)
    return true
  }
}
