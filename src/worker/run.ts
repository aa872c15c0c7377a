import type { HeldJob } from '../lease/held-leases.js'
import type { AttemptResult } from '../settle/decide.js'
import type { Registration } from './handlers.js'
import type { JobTransaction } from './job-transaction.js'

/** One call of a handler: for one job, or for a batch. It ends once, with a result for each job. */
export class Run {
  readonly registration: Registration
  readonly jobs: readonly HeldJob[]
  /** Only of a single job. */
  readonly transaction: JobTransaction | undefined
  #timers: NodeJS.Timeout[] = []
  #ended = false

  constructor(registration: Registration, jobs: readonly HeldJob[], transaction?: JobTransaction) {
    this.registration = registration
    this.jobs = jobs
    this.transaction = transaction
  }

  get kind(): string {
    return this.registration.definition.kind
  }

  /** True for the first caller only: the handler, its timeout and the shutdown may all want to end the run. */
  end(): boolean {
    if (this.#ended) return false
    this.#ended = true
    for (const timer of this.#timers) clearTimeout(timer)
    return true
  }

  /** Runs `action` in `ms` unless the run has ended by then. */
  after(ms: number, action: () => void): void {
    this.#timers.push(setTimeout(action, ms))
  }

  abort(reason: Error): void {
    for (const { abort } of this.jobs) abort.abort(reason)
  }

  /** The same result for each job. */
  all(result: AttemptResult): readonly AttemptResult[] {
    return this.jobs.map(() => result)
  }
}
