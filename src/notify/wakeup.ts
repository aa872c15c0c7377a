import type { Clock } from '../clock.js'
import { jittered, type Random } from '../random.js'

/**
 * A hint reaches every worker that listens. Those which have work already wait a random part of this first: one that
 * is idle takes the job meanwhile, and they do not queue up behind each other for nothing.
 */
const HERD_SPREAD_MS = 10

/** The database rounds to whole milliseconds and timers may fire early: look when the job is due, not just before. */
const DUE_SLACK_MS = 1

export interface WakeupOptions {
  readonly clock: Clock
  readonly random: Random
  readonly pollMinMs: number
  /** Asked before each wait: it may be longer while notifications arrive. */
  readonly pollMaxMs: () => number
  /** Whether the worker has jobs already, and may let an idle one go first. */
  readonly isBusy: () => boolean
}

/**
 * Decides when a queue is looked at again after a claim that brought less than was asked for. Notifications, reclaimed
 * jobs, jobs that become due and the poll timer all end in one "look now". Every hint may be lost: the poll is the
 * truth, and its interval doubles from `pollMinMs` to `pollMaxMs` while nothing is found.
 */
export class Wakeup {
  readonly #options: WakeupOptions
  /** Whether the last look found jobs that a limit holds back. */
  heldBack = false
  #pollMs: number
  #hinted = false
  #dueAtMs = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #wakeAtMs = Number.POSITIVE_INFINITY
  #wake: (() => void) | undefined

  constructor(options: WakeupOptions) {
    this.#options = options
    this.#pollMs = options.pollMinMs
  }

  /** There may be something to claim now. Any number of hints before the next look count as one. */
  hint(): void {
    if (this.#hinted) return
    this.#hinted = true
    if (this.#wake) this.#arm(this.#spreadMs())
  }

  /**
   * A job has ended, and with it its use of every limit. What it held back may start now, and without notifications
   * nobody tells. A claim does not answer whether keys hold jobs back, so where the job had one we look in any case.
   */
  slotFreed({ keyed }: { readonly keyed: boolean }): void {
    if (this.heldBack || keyed) this.hint()
  }

  /** There may be something to claim in `delayMs`. */
  hintIn(delayMs: number): void {
    const atMs = this.#options.clock.monotonicMs() + delayMs + DUE_SLACK_MS
    if (atMs >= this.#dueAtMs) return
    this.#dueAtMs = atMs
    if (this.#wake && !this.#hinted) this.#arm(this.#untilDueMs())
  }

  /** A claim is about to be sent: it answers all hints so far. Those that come from now on are for the next look. */
  look(): void {
    this.#hinted = false
    if (this.#isDue()) this.#dueAtMs = Number.POSITIVE_INFINITY
  }

  /**
   * Resolves at the next hint, due time or poll, or when `signal` aborts. `found`: the last claim brought something.
   * Answers whether there is a reason to expect jobs, other than that some time has passed.
   */
  async wait(found: boolean, signal: AbortSignal): Promise<boolean> {
    await this.#sleep(found, signal)
    return this.#hinted || this.#isDue()
  }

  #sleep(found: boolean, signal: AbortSignal): Promise<void> {
    const pollMaxMs = this.#options.pollMaxMs()
    this.#pollMs = found ? this.#options.pollMinMs : Math.min(this.#pollMs, pollMaxMs)
    const waitMs = this.#hinted
      ? this.#spreadMs()
      : Math.min(jittered(this.#pollMs, this.#options.random), this.#untilDueMs())
    this.#pollMs = Math.min(this.#pollMs * 2, pollMaxMs)
    if (signal.aborted || waitMs <= 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#wake = () => {
        clearTimeout(this.#timer)
        this.#wake = undefined
        this.#wakeAtMs = Number.POSITIVE_INFINITY
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const wake = this.#wake
      signal.addEventListener('abort', wake, { once: true })
      this.#arm(waitMs)
    })
  }

  /** Wakes after `waitMs`, or earlier if that was already planned. */
  #arm(waitMs: number): void {
    if (waitMs <= 0) {
      this.#wake?.()
      return
    }
    const atMs = this.#options.clock.monotonicMs() + waitMs
    if (atMs >= this.#wakeAtMs) return
    clearTimeout(this.#timer)
    this.#wakeAtMs = atMs
    this.#timer = setTimeout(() => this.#wake?.(), Math.ceil(waitMs))
  }

  #isDue(): boolean {
    return this.#dueAtMs <= this.#options.clock.monotonicMs() + DUE_SLACK_MS
  }

  #untilDueMs(): number {
    return Math.max(0, this.#dueAtMs - this.#options.clock.monotonicMs())
  }

  #spreadMs(): number {
    return this.#options.isBusy() ? HERD_SPREAD_MS * this.#options.random.next() : 0
  }
}
