import { aborted, type Clock, delay } from '../clock.js'
import { classify } from '../driver/pg-errors.js'
import { ConfigurationError } from '../errors.js'
import type { JobDefinition } from '../job/define-job.js'
import type { Logger } from '../logger.js'
import type { Random } from '../random.js'
import type { NumbersStore } from '../store/numbers-store.js'
import type { Store } from '../store/store.js'
import { describeError } from './error-log.js'
import { type BatchHandler, type BatchOptions, Handlers, type JobHandler } from './handlers.js'
import type { TransactionSource } from './job-transaction.js'
import type { ResolvedWorkerOptions } from './options.js'
import { CLOSE_WAIT_MS, type ShutdownReport, within } from './shutdown.js'
import { type SignalHost, Signals } from './signals.js'
import { WorkerRuntime } from './worker-runtime.js'

/** Hints from the database. Every one of them may be lost. */
export interface QueueNotifications {
  /** Calls `hint` when the queue may have something to claim, and whenever hints may have been missed. */
  subscribe(queue: string, hint: () => void): () => void
  /** Whether hints arrive at present. */
  readonly connected: boolean
}

/** What a worker is given by the composition root: made for it alone, except the transactions. */
export interface WorkerDependencies {
  /** For claims and housekeeping, which may wait seconds for a lock. */
  readonly claimStore: Pick<Store, 'claim' | 'claimed' | 'maintain'>
  /** For heartbeats and outcomes, on a connection of its own: they must not stand in line behind a claim. */
  readonly settleStore: Pick<Store, 'settle' | 'extend' | 'reclaim' | 'completeIn'>
  /** For what workers count, and for saying that this one is there. */
  readonly numbersStore: Pick<NumbersStore, 'beat' | 'record' | 'leave' | 'prune'>
  /** The application's pool, for `context.transaction`. */
  readonly transactions: TransactionSource
  /** Undefined with `listen: false`. */
  readonly notifications: QueueNotifications | undefined
  /** Rejects when the worker cannot work: no connection, wrong credentials, a schema that is not migrated. */
  readonly checkReady: () => Promise<void>
  /** Closes what was opened for this worker. */
  readonly close: () => Promise<void>
  /** For display: who holds a lease. Unique. */
  readonly workerId: string
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

/** How a worker is doing, for a health check. */
export interface WorkerStatus {
  readonly state: 'created' | 'starting' | 'running' | 'stopping' | 'stopped'
  /** Jobs whose handlers run. */
  readonly running: number
  /** Finished jobs whose outcomes are not written yet. */
  readonly unsettled: number
  /** Milliseconds since the last claim that the database answered; undefined before the first. */
  readonly lastClaimAgoMs: number | undefined
}

/** How long a start tries to reach a database that may just be restarting. */
const START_PATIENCE_MS = 10_000

const START_RETRY_MS = 500

/**
 * Claims jobs and runs their handlers.
 *
 * created → starting → running → stopping → stopped. `stop` may be called in any state; a stopped worker cannot be
 * started again. The worker owns neither the process nor its signals: see `runUntilSignal`.
 */
export class Worker {
  readonly #options: ResolvedWorkerOptions
  readonly #dependencies: WorkerDependencies
  readonly #handlers = new Handlers()
  readonly #stopping = new AbortController()
  #state: WorkerStatus['state'] = 'created'
  #runtime: WorkerRuntime | undefined
  #started: Promise<void> | undefined
  #stopped: Promise<ShutdownReport> | undefined

  constructor(options: ResolvedWorkerOptions, dependencies: WorkerDependencies) {
    this.#options = options
    this.#dependencies = dependencies
  }

  /** Says how jobs of a kind are run: one at a time. Before `start`, and once for each kind. */
  handle<Input, Output>(definition: JobDefinition<Input, Output>, handler: JobHandler<Output>): this {
    this.#checkNotStarted('handle')
    this.#handlers.add(definition, handler)
    return this
  }

  /** Says how jobs of a kind are run: several in one call. Before `start`, and once for each kind. */
  handleBatch<Input, Output>(
    definition: JobDefinition<Input, Output>,
    options: BatchOptions,
    handler: BatchHandler<Output>,
  ): this {
    this.#checkNotStarted('handleBatch')
    this.#handlers.addBatch(definition, options, handler)
    return this
  }

  /**
   * Begins to work. Rejects when that cannot succeed: options that do not fit together, wrong credentials, a schema
   * that is not migrated, a database that cannot be reached for ten seconds. Later failures are survived.
   */
  async start(): Promise<void> {
    if (this.#stopped) throw new ConfigurationError('the worker was stopped; make a new one with tenantry.worker()')
    const { kinds, concurrency } = this.#options
    this.#started ??= this.#start(this.#handlers.claimable(kinds, concurrency))
    await this.#started
  }

  /**
   * Stops claiming, lets running handlers finish, aborts those that take longer than `shutdownTimeoutMs`, gives their
   * jobs back, and writes all outcomes. Always resolves, in bounded time; calling it again waits for the same stop.
   *
   * Called from a handler it cannot wait for that handler: it resolves when all others have ended, and the worker has
   * stopped soon after the handler has returned.
   */
  async stop(): Promise<void> {
    const stopped = this.#beginStop()
    if (this.#runtime?.insideHandler) await Promise.race([this.#runtime.othersIdle(), stopped])
    else await stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /**
   * Starts, and stops on the first SIGTERM or SIGINT; a second one exits at once. For programs that are a worker: the
   * only place where Tenantry touches the process. Resolves when the worker has stopped, for whatever reason.
   */
  async runUntilSignal(host: SignalHost = process): Promise<void> {
    // Installed first: a signal during a slow start must not kill the process halfway.
    const signals = new Signals(host)
    try {
      const end = Promise.race([signals.first, aborted(this.#stopping.signal)])
      await Promise.race([this.start(), end])
      await end
      const { abandoned } = await this.#beginStop()
      if (abandoned > 0) signals.exitUnlessEnded()
    } finally {
      signals.dispose()
    }
  }

  status(): WorkerStatus {
    return {
      state: this.#state,
      running: this.#runtime?.running ?? 0,
      unsettled: this.#runtime?.unsettled ?? 0,
      lastClaimAgoMs: this.#runtime?.lastClaimAgoMs,
    }
  }

  #checkNotStarted(method: string): void {
    if (this.#state === 'created') return
    throw new ConfigurationError(`${method}() was called after start(); register all handlers first`)
  }

  async #start(kinds: readonly string[]): Promise<void> {
    this.#state = 'starting'
    try {
      await this.#waitUntilReady()
    } catch (error) {
      await this.#beginStop()
      throw error
    }
    if (this.#stopping.signal.aborted) {
      // Again, since this start may have opened something after the stop had closed everything.
      await within(CLOSE_WAIT_MS, this.#dependencies.close)
      return
    }
    this.#runtime = new WorkerRuntime({
      ...this.#dependencies,
      settings: this.#options,
      kinds,
      handlers: this.#handlers,
    })
    this.#state = 'running'
    await this.#runtime.start()
    const { queues, concurrency, listen } = this.#options
    this.#dependencies.log.info('the worker has started', { queues, kinds, concurrency, listen })
    this.#warnOfOtherQueues(kinds)
  }

  /** Not refused: the jobs may be enqueued with `queue`, or by SQL. Yet most often a worker that waits for ever is the reason. */
  #warnOfOtherQueues(kinds: readonly string[]): void {
    const { queues } = this.#options
    for (const kind of kinds) {
      const queue = this.#handlers.get(kind)?.definition.queue
      if (queue === undefined || queues.includes(queue)) continue
      const text =
        `kind ${JSON.stringify(kind)} is enqueued to ${JSON.stringify(queue)} by default, but this worker takes ` +
        `${queues.map((name) => JSON.stringify(name)).join(', ')}; pass { queue: ${JSON.stringify(queue)} } to ` +
        'tenantry.worker() unless its jobs are enqueued with another queue'
      this.#dependencies.log.warn(text)
    }
  }

  #beginStop(): Promise<ShutdownReport> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<ShutdownReport> {
    this.#state = 'stopping'
    this.#stopping.abort()
    const { log, close } = this.#dependencies
    let report: ShutdownReport = { abandoned: 0, unsettled: 0 }
    if (this.#runtime) report = await this.#runtime.stop()
    else await within(CLOSE_WAIT_MS, close)
    this.#state = 'stopped'
    if (this.#runtime) log.info('the worker has stopped', { ...report })
    else log.info('the worker was stopped before it had started')
    return report
  }

  /** A database that is restarting gets a little time; what cannot get better is thrown at once. */
  async #waitUntilReady(): Promise<void> {
    const { checkReady, clock, log } = this.#dependencies
    const giveUpMs = clock.monotonicMs() + START_PATIENCE_MS
    while (!this.#stopping.signal.aborted) {
      try {
        return await checkReady()
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        if (classify(error) === 'fatal' || clock.monotonicMs() > giveUpMs) throw error
        log.warn('the worker cannot start yet; it tries again', { error: describeError(error) })
        await delay(START_RETRY_MS, this.#stopping.signal)
      }
    }
  }
}
