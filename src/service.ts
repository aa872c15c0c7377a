import { delay } from './clock.js'

/** The one shape of everything that runs in the background. Both calls may be repeated; `stop` waits until it is quiet. */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

export interface PeriodicOptions {
  /** Milliseconds until the next run; asked anew after each, so that it can be jittered. */
  readonly intervalMs: () => number
  /** One run. It is never started while the previous one is still going. */
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Told of a run that threw. The loop goes on: one failed query must not silence it for ever. */
  readonly onError: (error: unknown) => void
}

/** Runs a function again and again until stopped, waiting between runs. */
export class Periodic implements Service {
  readonly #options: PeriodicOptions
  #abort: AbortController | undefined
  #loop: Promise<void> | undefined

  constructor(options: PeriodicOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#loop) return
    this.#abort = new AbortController()
    this.#loop = this.#runLoop(this.#abort.signal)
  }

  async stop(): Promise<void> {
    this.#abort?.abort()
    await this.#loop
    this.#loop = undefined
  }

  async #runLoop(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(this.#options.intervalMs(), signal)
      if (signal.aborted) return
      try {
        await this.#options.run(signal)
      } catch (error) {
        this.#options.onError(error)
      }
    }
  }
}

/** How long to wait after so many failures in a row, 1 or more: doubled with each, and bounded. To be jittered. */
export function backOffMs(failures: number, bounds: { readonly minMs: number; readonly maxMs: number }): number {
  return Math.min(bounds.maxMs, bounds.minMs * 2 ** Math.min(failures - 1, 10))
}
