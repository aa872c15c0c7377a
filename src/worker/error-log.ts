import type { Clock } from '../clock.js'
import type { Logger } from '../logger.js'

/** A database that is down fails every loop several times a second; one line in this time for each says as much. */
const QUIET_MS = 10_000

interface Streak {
  failures: number
  loggedAtMs: number
}

/**
 * Reports what goes wrong again and again: the first failure at once, then one line per interval with the number of
 * failures so far, and one line when it works again.
 */
export class ErrorLog {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #observe: (error: unknown) => void
  readonly #streaks = new Map<string, Streak>()

  constructor(options: { log: Logger; clock: Clock; observe: (error: unknown) => void }) {
    this.#log = options.log
    this.#clock = options.clock
    this.#observe = options.observe
  }

  /** `what` is the same for every failure of one loop, as in "claim from queue mail". */
  failed(what: string, error: unknown): void {
    this.#observe(error)
    const now = this.#clock.monotonicMs()
    const streak = this.#streaks.get(what) ?? { failures: 0, loggedAtMs: Number.NEGATIVE_INFINITY }
    this.#streaks.set(what, streak)
    streak.failures += 1
    if (now - streak.loggedAtMs < QUIET_MS) return
    streak.loggedAtMs = now
    this.#log.warn(`${what} failed; it is tried again`, { failures: streak.failures, error: describeError(error) })
  }

  succeeded(what: string): void {
    const streak = this.#streaks.get(what)
    if (!streak) return
    this.#streaks.delete(what)
    this.#log.info(`${what} works again`, { failures: streak.failures })
  }
}

/** An error as one line for a log: anything may have been thrown. */
export function describeError(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'an error that cannot be described'
  }
}
