import { constants } from 'node:os'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
type Signal = (typeof SIGNALS)[number]

/** How long a process may take to end by itself after a stop that had to leave handlers behind. */
const LEFTOVER_EXIT_MS = 500

/** What of `process` is needed here, so that a test need not end its own. */
export interface SignalHost {
  on(signal: Signal, listener: () => void): unknown
  off(signal: Signal, listener: () => void): unknown
  exit(code: number): void
}

/**
 * The first SIGTERM or SIGINT resolves `first`. A second one exits at once with 128 + its number: whoever sends it does
 * not want to wait.
 */
export class Signals {
  readonly first: Promise<void>
  readonly #host: SignalHost
  readonly #listeners = new Map<Signal, () => void>()

  constructor(host: SignalHost) {
    this.#host = host
    this.first = new Promise((resolve) => {
      let signalled = false
      for (const signal of SIGNALS) {
        const listener = () => {
          if (signalled) host.exit(128 + constants.signals[signal])
          signalled = true
          resolve()
        }
        this.#listeners.set(signal, listener)
        host.on(signal, listener)
      }
    })
  }

  dispose(): void {
    for (const [signal, listener] of this.#listeners) this.#host.off(signal, listener)
  }

  /**
   * A handler that ignores its signal keeps the process alive after the stop. It had its chance and the job has been
   * given back, so the process exits with 1 unless the application ends it earlier.
   */
  exitUnlessEnded(): void {
    setTimeout(() => this.#host.exit(1), LEFTOVER_EXIT_MS).unref()
  }
}
