import { AsyncLocalStorage } from 'node:async_hooks'
import { HandlerTimeoutError, LeaseLostError, ShutdownError } from '../errors.js'
import type { Job } from '../job/job.js'
import type { HeldJob, HeldLeases } from '../lease/held-leases.js'
import type { Logger } from '../logger.js'
import type { Random } from '../random.js'
import type { Completer } from '../settle/completer.js'
import { type AttemptResult, decideOutcome } from '../settle/decide.js'
import type { Outcome } from '../settle/outcome.js'
import type { Store } from '../store/store.js'
import { attempt } from './attempt.js'
import { BatchCollector } from './batch-collector.js'
import type { BatchRegistration, Handlers, Registration } from './handlers.js'
import { JobTransaction, type TransactionSource } from './job-transaction.js'
import { Run } from './run.js'

/** How long a handler may go on after its time is over, to clean up. Then its attempt has failed, whatever it does. */
const TIMEOUT_GRACE_MS = 5_000

export interface ExecutorOptions {
  readonly handlers: Handlers
  readonly leases: HeldLeases
  readonly completer: Completer
  readonly store: Pick<Store, 'completeIn'>
  readonly transactions: TransactionSource
  readonly log: Logger
  readonly random: Random
  /** A job has ended and its slot is free. */
  readonly slotFreed: () => void
  readonly leaseLost: (held: HeldJob) => void
  /** What an attempt meant for its job, as it is handed over to be written. */
  readonly decided: (job: Job, outcome: Outcome) => void
  /** A handler has begun with a job, and has ended with it. */
  readonly began: (held: HeldJob) => void
  readonly ended: (held: HeldJob) => void
  /** A job was completed by `context.transaction`, so that nothing is left to be written. */
  readonly completedInTransaction: (held: HeldJob) => void
}

/**
 * Runs the handlers of claimed jobs: validate, call, decide, settle.
 *
 * A slot is free again as soon as the handler has ended, not when its outcome is written: `concurrency` is how many
 * handlers run at once, which is what an application sizes its connections and its memory by, and outcomes that wait
 * to be written are bounded by the completer's own limit.
 */
export class Executor {
  readonly #options: ExecutorOptions
  readonly #runs = new Set<Run>()
  readonly #collectors = new Map<string, BatchCollector>()
  readonly #current = new AsyncLocalStorage<Run>()
  /** Runs whose handlers have called `othersIdle`. */
  readonly #waitingForOthers = new WeakSet<Run>()
  readonly #idleWaiters = new Set<{ readonly isIdle: () => boolean; readonly resolve: () => void }>()

  constructor(options: ExecutorOptions) {
    this.#options = options
  }

  /** Jobs whose handler has not ended. */
  get running(): readonly HeldJob[] {
    return [...this.#runs].flatMap((run) => run.jobs)
  }

  /** Kinds whose handlers run now: the suspects when the event loop was blocked. */
  get runningKinds(): readonly string[] {
    return [...new Set([...this.#runs].map((run) => run.kind))]
  }

  /** Whether the caller is a handler of this worker, or was called by one, that has not ended. */
  get insideHandler(): boolean {
    const run = this.#current.getStore()
    return run !== undefined && this.#runs.has(run)
  }

  /** Takes over jobs that were just claimed, each with a slot. */
  start(jobs: readonly HeldJob[]): void {
    const batches = new Map<BatchRegistration, HeldJob[]>()
    for (const held of jobs) {
      const registration = this.#options.handlers.get(held.job.kind)
      if (!registration) this.release([held])
      else if (registration.type === 'single') this.#begin(registration, [held])
      else batches.set(registration, [...(batches.get(registration) ?? []), held])
    }
    for (const [registration, batch] of batches) this.#collector(registration).add(batch)
  }

  /** Gives jobs back that have not been started: their attempt does not count. */
  release(jobs: readonly HeldJob[]): void {
    for (const held of jobs) {
      this.#settle(held, { type: 'release' })
      this.#options.slotFreed()
    }
  }

  /** Gives back the jobs that wait for a batch to fill up. */
  releaseCollected(): void {
    for (const collector of this.#collectors.values()) this.release(collector.takeAll())
  }

  /** Resolves once no handler runs. */
  idle(): Promise<void> {
    return this.#whenIdle(() => this.#runs.size === 0)
  }

  /** Called from handlers: resolves once only handlers that wait for this are left. */
  othersIdle(): Promise<void> {
    const run = this.#current.getStore()
    if (run) this.#waitingForOthers.add(run)
    return this.#whenIdle(() => [...this.#runs].every((other) => this.#waitingForOthers.has(other)))
  }

  /** Runs `action` as if it were called by nobody's handler. */
  outsideHandlers<Result>(action: () => Result): Result {
    return this.#current.exit(action)
  }

  /** Tells all handlers to end. */
  abort(reason: Error): void {
    for (const run of this.#runs) run.abort(reason)
  }

  /** Gives back the jobs whose handlers did not end, and no longer waits for them. Answers with those jobs. */
  abandon(): readonly HeldJob[] {
    const runs = [...this.#runs].filter((run) => run.end())
    for (const run of runs) this.#conclude(run, (held) => this.#settle(held, { type: 'release' }))
    return runs.flatMap((run) => run.jobs)
  }

  #collector(registration: BatchRegistration): BatchCollector {
    const { kind } = registration.definition
    const known = this.#collectors.get(kind)
    if (known) return known
    const start = (batch: readonly HeldJob[]) => this.#begin(registration, batch)
    const collector = new BatchCollector({ size: registration.size, waitMs: registration.waitMs, start })
    this.#collectors.set(kind, collector)
    return collector
  }

  #begin(registration: Registration, jobs: readonly HeldJob[]): void {
    const run = new Run(registration, jobs, this.#transaction(registration, jobs))
    this.#runs.add(run)
    for (const held of jobs) this.#options.began(held)
    this.#limitTime(run)
    this.#current
      .run(run, () => attempt(run, this.#options.log))
      .then(
        (results) => this.#finish(run, results),
        (error: unknown) => this.#finish(run, run.all({ type: 'threw', error })),
      )
  }

  #transaction(registration: Registration, [held]: readonly HeldJob[]): JobTransaction | undefined {
    if (registration.type === 'batch' || !held) return undefined
    return new JobTransaction(held, this.#options.transactions, this.#options.store)
  }

  #limitTime(run: Run): void {
    const { timeoutMs } = run.registration.definition
    if (timeoutMs === undefined) return
    const error = new HandlerTimeoutError(timeoutMs)
    run.after(timeoutMs, () => run.abort(error))
    run.after(timeoutMs + TIMEOUT_GRACE_MS, () => {
      const fields = { kind: run.kind, timeoutMs }
      this.#options.log.error(
        'a handler ignored its signal; its attempt has failed, but it may still be running',
        fields,
      )
      this.#finish(run, run.all({ type: 'threw', error }))
    })
  }

  #finish(run: Run, results: readonly AttemptResult[]): void {
    if (!run.end()) return
    this.#conclude(run, (held, index) =>
      this.#decide(run, held, results[index] ?? { type: 'returned', value: undefined }),
    )
  }

  #conclude(run: Run, settle: (held: HeldJob, index: number) => void): void {
    this.#runs.delete(run)
    run.jobs.forEach((held, index) => {
      this.#options.ended(held)
      settle(held, index)
      this.#options.slotFreed()
    })
    this.#resolveIdle()
  }

  #decide(run: Run, held: HeldJob, result: AttemptResult): void {
    const state = run.transaction?.state ?? 'idle'
    if (state === 'committed') this.#completedInTransaction(held, result)
    else if (state === 'fenced') this.#dropLost(held)
    else if (wasInterrupted(held, result)) this.#settle(held, { type: 'release' })
    else this.#settle(held, this.#outcome(run, held, finalResult(held, result, state)), state !== 'idle')
  }

  #outcome(run: Run, { job }: HeldJob, result: AttemptResult): Outcome {
    const { retry } = run.registration.definition
    const { outcome, warning } = decideOutcome(result, {
      attempt: job.attempt,
      maxAttempts: job.maxAttempts,
      retry,
      random: this.#options.random,
    })
    if (warning !== undefined) this.#options.log.warn(warning, { kind: job.kind, jobId: job.id })
    return outcome
  }

  /** `doubtful`: it may be settled already, by a transaction whose end we do not know. */
  #settle(held: HeldJob, outcome: Outcome, doubtful = false): void {
    // What waits to be written may be thousands of jobs, and their payloads as many megabytes.
    held.job = { ...held.job, payload: undefined, errors: [] }
    if (held.lease.lost) {
      this.#dropLost(held)
      return
    }
    this.#options.completer.add(held, outcome, doubtful)
    this.#options.decided(held.job, outcome)
  }

  #dropLost(held: HeldJob): void {
    this.#options.leases.drop(held)
    this.#options.completer.finishIfEmpty(held.lease)
    this.#options.leaseLost(held)
  }

  #completedInTransaction(held: HeldJob, result: AttemptResult): void {
    const { leases, completer, log, completedInTransaction } = this.#options
    leases.drop(held)
    completer.finishIfEmpty(held.lease)
    completedInTransaction(held)
    if (result.type === 'returned' && result.value === undefined) return
    log.warn('a job was completed in its transaction; what its handler threw or returned afterwards changes nothing', {
      kind: held.job.kind,
      jobId: held.job.id,
    })
  }

  #whenIdle(isIdle: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.add({ isIdle, resolve })
      this.#resolveIdle()
    })
  }

  #resolveIdle(): void {
    for (const waiter of this.#idleWaiters) {
      if (!waiter.isIdle()) continue
      this.#idleWaiters.delete(waiter)
      waiter.resolve()
    }
  }
}

/**
 * The handler obeyed its signal because we shut down or the database was out of reach: no fault of the job, so the
 * attempt does not count. If another worker has the job by now, the fence turns the release away.
 */
function wasInterrupted(held: HeldJob, result: AttemptResult): boolean {
  const { reason } = held.abort.signal
  return result.type === 'threw' && (reason instanceof ShutdownError || reason instanceof LeaseLostError)
}

/** The result as it is to be judged and recorded. */
function finalResult(held: HeldJob, result: AttemptResult, transaction: 'idle' | 'open' | 'doubtful'): AttemptResult {
  const { reason } = held.abort.signal
  if (transaction === 'open' && result.type === 'returned') {
    return {
      type: 'threw',
      error: new Error('the handler returned before its context.transaction had ended; await it'),
    }
  }
  // What a handler throws when it obeys its signal is often just "aborted". The reason says more.
  return result.type === 'threw' && reason instanceof HandlerTimeoutError ? { type: 'threw', error: reason } : result
}
