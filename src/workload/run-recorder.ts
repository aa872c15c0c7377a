import type { HandlerStart, RunRecord } from './comparison.js'
import type { WorkerProgress } from './protocol.js'
import { type Workload, WorkloadError } from './workload.js'

/** A run in which nothing happens for so long, beyond the longest handler, has lost a job or its database. */
const STALL_MS = 60_000

/** Collects what the worker processes report about one run. */
export class RunRecorder {
  /** When each job was enqueued, to be filled in by whoever enqueues it. */
  readonly enqueuedMs: Float64Array
  readonly #workload: Workload
  readonly #onEnded: ((indices: readonly number[]) => void) | undefined
  readonly #starts: HandlerStart[] = []
  readonly #claimsMs: number[] = []
  #settled = 0
  #settledMs = 0
  #heard: () => void = () => {}

  constructor(workload: Workload, onEnded?: (indices: readonly number[]) => void) {
    this.#workload = workload
    this.#onEnded = onEnded
    this.enqueuedMs = new Float64Array(workload.jobs.length)
  }

  add({ starts, claimsMs, settled, settledMs }: WorkerProgress): void {
    for (const start of starts) this.#starts.push(start)
    for (const ms of claimsMs) this.#claimsMs.push(ms)
    this.#settled += settled
    this.#settledMs = Math.max(this.#settledMs, settledMs)
    if (starts.length > 0) this.#onEnded?.(starts.map((start) => start.index))
    this.#heard()
  }

  /**
   * Resolves when every job is settled; without a word, too, when the signal aborts. To be asked once all jobs are
   * enqueued, since a log may have quiet nights.
   */
  async settled(signal: AbortSignal): Promise<void> {
    const longestMs = this.#workload.jobs.reduce((most, job) => Math.max(most, job.durationMs), 0)
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(() => reject(this.#stalled()), longestMs + STALL_MS)
        this.#heard = () => {
          timer?.refresh()
          if (this.#settled >= this.#workload.jobs.length) resolve()
        }
        signal.addEventListener('abort', () => resolve(), { once: true })
        this.#heard()
      })
    } finally {
      clearTimeout(timer)
    }
  }

  record(): RunRecord {
    const { enqueuedMs } = this
    return { enqueuedMs, starts: this.#starts, claimsMs: this.#claimsMs, settledMs: this.#settledMs }
  }

  #stalled(): WorkloadError {
    const { jobs } = this.#workload
    const ran = new Set(this.#starts.map(({ index }) => index)).size
    return new WorkloadError(
      `the run stalled: of ${jobs.length} jobs ${ran} have run and ${this.#settled} are settled, and nothing more happens`,
    )
  }
}
