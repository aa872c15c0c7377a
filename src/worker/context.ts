import type { TransactionClient } from '../driver/transaction-client.js'
import type { HeldJob } from '../lease/held-leases.js'
import type { Logger } from '../logger.js'
import { cancel, discard, type PlannedExit, snooze } from '../settle/planned-exit.js'
import type { JobTransaction } from './job-transaction.js'

/** What a batch handler is given besides its jobs. */
export interface BatchContext {
  /**
   * Aborts when the handler should end now: the time of its definition is over, the worker shuts down, or the lease of
   * the job (of every job of a batch) was lost. `signal.reason` says which: a
   * `HandlerTimeoutError`, a `ShutdownError` or a `LeaseLostError`.
   */
  readonly signal: AbortSignal
  /** Writes to the worker's logger with the job's id, kind, tenant and attempt. Payloads are never logged. */
  readonly log: Logger
  /** To be returned: run the job again in `delayMs`. The attempt does not count. */
  snooze(delayMs: number): PlannedExit
  /** To be returned: the job is no longer wanted. */
  cancel(reason: string): PlannedExit
  /** To be returned: the job can never succeed, whatever attempts are left. */
  discard(reason: string): PlannedExit
}

/** What a handler is given besides its job. */
export interface JobContext extends BatchContext {
  /**
   * Runs `work` in a transaction and completes the job in the same one: its writes and the job's completion are
   * committed together or not at all. When `work` throws, or the lease was lost, everything is rolled back. Once it
   * has resolved the job is settled, and what the handler does afterwards cannot change that.
   */
  transaction<Result>(work: (transaction: TransactionClient) => Promise<Result>): Promise<Result>
}

/** The exits of one call of a handler, which remember that one was made: made and not returned it would do nothing. */
export class Exits {
  #made: PlannedExit['type'] | undefined

  readonly methods = {
    snooze: (delayMs: number) => this.#note(snooze(delayMs)),
    cancel: (reason: string) => this.#note(cancel(reason)),
    discard: (reason: string) => this.#note(discard(reason)),
  }

  /** Throws when the handler returned nothing although it had made an exit, most likely without `return`. */
  checkReturned(value: unknown): void {
    const made = this.#made
    if (value !== undefined || made === undefined) return
    throw new TypeError(`context.${made}() was called but not returned; write "return context.${made}(…)"`)
  }

  #note(exit: PlannedExit): PlannedExit {
    this.#made = exit.type
    return exit
  }
}

export function jobContext(held: HeldJob, log: Logger, own: { exits: Exits; transaction: JobTransaction }): JobContext {
  const { id, kind, tenant, attempt } = held.job
  return {
    ...own.exits.methods,
    signal: held.abort.signal,
    log: withFields(log, { jobId: id, kind, tenant, attempt }),
    transaction: (work) => own.transaction.run(work),
  }
}

export function batchContext(
  batch: readonly HeldJob[],
  log: Logger,
  own: { exits: Exits; kind: string },
): BatchContext {
  const { exits, kind } = own
  return { ...exits.methods, signal: allAborted(batch), log: withFields(log, { kind, batch: batch.length }) }
}

/** Aborts once every job has been: as long as one of them is still ours, the batch is worth finishing. */
function allAborted(batch: readonly HeldJob[]): AbortSignal {
  const controller = new AbortController()
  let left = batch.length
  for (const { abort } of batch) {
    const count = () => {
      left -= 1
      if (left === 0) controller.abort(abort.signal.reason)
    }
    if (abort.signal.aborted) count()
    else abort.signal.addEventListener('abort', count, { once: true })
  }
  return controller.signal
}

function withFields(log: Logger, fixed: Readonly<Record<string, unknown>>): Logger {
  return {
    debug: (message, fields) => log.debug(message, { ...fixed, ...fields }),
    info: (message, fields) => log.info(message, { ...fixed, ...fields }),
    warn: (message, fields) => log.warn(message, { ...fixed, ...fields }),
    error: (message, fields) => log.error(message, { ...fixed, ...fields }),
  }
}
