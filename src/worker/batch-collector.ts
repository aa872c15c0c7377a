import type { HeldJob } from '../lease/held-leases.js'

export interface BatchCollectorOptions {
  readonly size: number
  readonly waitMs: number
  readonly start: (batch: readonly HeldJob[]) => void
}

/** Cuts the claimed jobs of one kind into batches. What is left over may wait for the next claim to fill it up. */
export class BatchCollector {
  readonly #options: BatchCollectorOptions
  #waiting: HeldJob[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: BatchCollectorOptions) {
    this.#options = options
  }

  add(jobs: readonly HeldJob[]): void {
    const { size, waitMs } = this.#options
    this.#waiting.push(...jobs)
    while (this.#waiting.length >= size) this.#start(this.#waiting.splice(0, size))
    if (this.#waiting.length === 0 || waitMs === 0) this.#startRest()
    else this.#timer ??= setTimeout(() => this.#startRest(), waitMs)
  }

  /** The jobs that wait for company; they are no longer waited for. */
  takeAll(): readonly HeldJob[] {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return this.#waiting.splice(0)
  }

  #startRest(): void {
    const rest = this.takeAll()
    if (rest.length > 0) this.#start(rest)
  }

  #start(batch: readonly HeldJob[]): void {
    this.#options.start(batch)
  }
}
