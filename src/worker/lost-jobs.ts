import type { HeldJob } from '../lease/held-leases.js'
import type { Logger } from '../logger.js'
import type { LeaseLostEvent } from './options.js'

/** Job ids in one log line. After an outage thousands may be lost together. */
const SHOWN_MAX = 10

export interface LostJobsOptions {
  readonly log: Logger
  readonly observe: (event: LeaseLostEvent) => void
}

/** Reports each job whose lease was lost once, whoever notices it, and all that were lost together in one log line. */
export class LostJobs {
  readonly #options: LostJobsOptions
  readonly #reported = new WeakSet<HeldJob>()
  #unlogged: HeldJob[] = []

  constructor(options: LostJobsOptions) {
    this.#options = options
  }

  report(held: HeldJob): void {
    if (this.#reported.has(held)) return
    this.#reported.add(held)
    const { id, queue, kind, tenant, attempt } = held.job
    this.#options.observe({ queue, kind, tenant, jobId: id, attempt, leaseId: held.lease.id })
    this.#unlogged.push(held)
    if (this.#unlogged.length === 1) setImmediate(() => this.#log())
  }

  #log(): void {
    const lost = this.#unlogged
    this.#unlogged = []
    this.#options.log.warn(
      'the lease of running jobs was lost: they run again elsewhere and their outcome here is not recorded; ' +
        'raise leaseMs, or make their handlers yield to the event loop more often',
      {
        jobs: lost.length,
        kinds: [...new Set(lost.map(({ job }) => job.kind))].slice(0, SHOWN_MAX),
        jobIds: lost.slice(0, SHOWN_MAX).map(({ job }) => job.id),
      },
    )
  }
}
