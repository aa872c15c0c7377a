import { type Clock, delay } from '../clock.js'
import type { Job } from '../job/job.js'
import type { Wakeup } from '../notify/wakeup.js'
import { jittered, type Random } from '../random.js'
import { backOffMs, type Service } from '../service.js'
import type { Completer } from '../settle/completer.js'
import type { ClaimRequest, Store } from '../store/store.js'
import type { Slots } from './slots.js'

const RETRY = { minMs: 100, maxMs: 5_000 }

/** Jobs that are ours now. */
export interface ClaimedJobs {
  readonly queue: string
  readonly leaseId: string
  readonly jobs: readonly Job[]
  /** Monotonic time before the claim was sent: the lease has run since then at the earliest. */
  readonly sentAtMs: number
}

/** One claim as the application may observe it. */
export interface ClaimEvent {
  readonly queue: string
  readonly durationMs: number
  readonly asked: number
  readonly claimed: number
}

export interface ClaimListener {
  /** Takes the jobs over, with one slot each. Also called while the loop stops: then they are to be released. */
  claimed(claim: ClaimedJobs): void
  observed(event: ClaimEvent): void
  failed(queue: string, error: unknown): void
  recovered(queue: string): void
}

export interface ClaimLoopOptions {
  readonly queue: string
  readonly kinds: readonly string[]
  readonly workerId: string
  readonly batchMax: number
  readonly leaseMs: number
  readonly listening: boolean
  readonly store: Pick<Store, 'claim' | 'claimed'>
  readonly slots: Slots
  readonly wakeup: Wakeup
  readonly completer: Pick<Completer, 'room'>
  readonly clock: Clock
  readonly random: Random
  readonly listener: ClaimListener
}

/**
 * The one claimer of a queue in this process. It asks in one statement for as many jobs as slots are free.
 *
 * - A claim that was filled says nothing about what is left: the next one goes out as soon as slots are free.
 * - A claim that was not filled has emptied the queue: the next one waits for the wake-up.
 * - A claim that failed may have been carried out all the same, with only the reply lost. Since we chose its lease id
 *   we can ask for its jobs. What cannot be found that way goes back to the queue when the lease expires.
 *
 * No error ends the loop.
 */
export class ClaimLoop implements Service {
  readonly #options: ClaimLoopOptions
  readonly #stopped = new AbortController()
  #loop: Promise<void> | undefined
  #failures = 0

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#loop ??= this.#run(this.#stopped.signal)
  }

  /** Sends no further claim, and waits for the one that is under way. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#loop
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { slots, wakeup, completer, batchMax } = this.#options
    let last = { asked: 0, claimed: 0 }
    while (!signal.aborted) {
      const isDrained = last.claimed < last.asked
      const isHinted = isDrained && (await wakeup.wait(last.claimed > 0, signal))
      await completer.room(signal)
      const asked = await slots.reserve(batchMax, signal)
      if (asked === 0) return
      const likelyEmpty = isDrained && last.claimed === 0 && !isHinted
      const claimed = await this.#claim(asked, likelyEmpty, signal)
      slots.unreserve(asked - claimed)
      last = { asked, claimed }
    }
  }

  /** Answers how many jobs were claimed and handed over. */
  async #claim(count: number, likelyEmpty: boolean, signal: AbortSignal): Promise<number> {
    const { queue, kinds, workerId, leaseMs, listening, store, wakeup, clock, random, listener } = this.#options
    const leaseId = random.uuid()
    const request: ClaimRequest = { queue, leaseId, workerId, kinds, count, leaseMs, listening, likelyEmpty }
    const sentAtMs = clock.monotonicMs()
    wakeup.look()
    let jobs: readonly Job[]
    try {
      const claim = await store.claim(request)
      jobs = claim.jobs
      // Due already and yet not claimed means that somebody holds its row: then the poll comes back to it.
      wakeup.heldBack = claim.heldBack ?? false
      if (claim.nextDueMs !== undefined && claim.nextDueMs > 0) wakeup.hintIn(claim.nextDueMs)
      this.#failures = 0
      listener.recovered(queue)
      listener.observed({ queue, durationMs: clock.monotonicMs() - sentAtMs, asked: count, claimed: jobs.length })
    } catch (error) {
      this.#noteFailure(error)
      jobs = await this.#findClaim(leaseId, sentAtMs, signal)
    }
    if (jobs.length > 0) listener.claimed({ queue, leaseId, jobs, sentAtMs })
    return jobs.length
  }

  /** The jobs of a claim whose reply was an error, if it was carried out. Asks until an answer comes or they expire. */
  async #findClaim(leaseId: string, sentAtMs: number, signal: AbortSignal): Promise<readonly Job[]> {
    const { leaseMs, store, clock, random } = this.#options
    do {
      await delay(jittered(backOffMs(this.#failures, RETRY), random), signal)
      try {
        return await store.claimed(leaseId)
      } catch (error) {
        this.#noteFailure(error)
      }
    } while (!signal.aborted && clock.monotonicMs() - sentAtMs < leaseMs)
    return []
  }

  #noteFailure(error: unknown): void {
    this.#failures += 1
    this.#options.listener.failed(this.#options.queue, error)
  }
}
