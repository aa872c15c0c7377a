import type { Job } from '../job/job.js'
import { type HeldJob, HeldLeases } from '../lease/held-leases.js'
import { Keeper } from '../lease/keeper.js'
import { Maintainer } from '../maintenance/maintainer.js'
import { Reclaimer } from '../maintenance/reclaimer.js'
import { Wakeup } from '../notify/wakeup.js'
import { Aggregator } from '../numbers/aggregator.js'
import { Flusher } from '../numbers/flusher.js'
import type { Service } from '../service.js'
import { Completer } from '../settle/completer.js'
import type { Outcome } from '../settle/outcome.js'
import { type ClaimedJobs, ClaimLoop } from './claim-loop.js'
import { describeError, ErrorLog } from './error-log.js'
import { Executor } from './executor.js'
import { FailureLog } from './failure-log.js'
import type { Handlers } from './handlers.js'
import { LostJobs } from './lost-jobs.js'
import { POLL_MAX_MS, type ResolvedWorkerOptions } from './options.js'
import { LAST_FLUSH_WAIT_MS, type ShutdownReport, shutDown, within } from './shutdown.js'
import { Slots } from './slots.js'
import type { WorkerDependencies } from './worker.js'

export interface WorkerRuntimeOptions extends WorkerDependencies {
  readonly settings: ResolvedWorkerOptions
  readonly kinds: readonly string[]
  readonly handlers: Handlers
}

/** The parts of a worker that has started, and who tells whom. The parts know nothing of each other. */
export class WorkerRuntime {
  readonly #options: WorkerRuntimeOptions
  readonly #errors: ErrorLog
  readonly #lost: LostJobs
  readonly #leases: HeldLeases
  readonly #slots: Slots
  readonly #completer: Completer
  readonly #executor: Executor
  readonly #keeper: Keeper
  readonly #numbers = new Aggregator()
  readonly #flusher: Flusher
  readonly #wakeups = new Map<string, Wakeup>()
  readonly #claimLoops: readonly ClaimLoop[]
  readonly #maintenance: readonly Service[]
  readonly #unsubscribe: (() => void)[] = []
  #stopping = false
  #lastClaimMs: number | undefined

  constructor(options: WorkerRuntimeOptions) {
    const { settings, log, clock } = options
    this.#options = options
    this.#errors = new ErrorLog({ log, clock, observe: (error) => this.#observe(settings.observe.error, error) })
    this.#lost = new LostJobs({ log, observe: (event) => this.#observe(settings.observe.leaseLost, event) })
    this.#leases = new HeldLeases(settings.leaseMs)
    this.#slots = new Slots(settings.concurrency, clock)
    this.#completer = this.#makeCompleter()
    this.#executor = this.#makeExecutor()
    this.#keeper = this.#makeKeeper()
    this.#flusher = this.#makeFlusher()
    this.#claimLoops = settings.queues.map((queue) => this.#makeClaimLoop(queue))
    this.#maintenance = [this.#makeReclaimer(), this.#makeMaintainer()]
  }

  get running(): number {
    return this.#executor.running.length
  }

  get unsettled(): number {
    return this.#completer.backlog
  }

  get lastClaimAgoMs(): number | undefined {
    return this.#lastClaimMs === undefined ? undefined : this.#options.clock.monotonicMs() - this.#lastClaimMs
  }

  get insideHandler(): boolean {
    return this.#executor.insideHandler
  }

  async start(): Promise<void> {
    const { notifications } = this.#options
    for (const [queue, wakeup] of this.#wakeups) {
      if (notifications) this.#unsubscribe.push(notifications.subscribe(queue, () => wakeup.hint()))
    }
    // All in one go: a stop in between would miss those that start after it.
    await Promise.all(
      [this.#keeper, this.#flusher, ...this.#maintenance, ...this.#claimLoops].map((service) => service.start()),
    )
  }

  /** Called from a handler: resolves when no other handler runs. */
  othersIdle(): Promise<void> {
    return this.#executor.othersIdle()
  }

  stop(): Promise<ShutdownReport> {
    // The stop may be called by a handler. It must not be taken for a part of that handler's run.
    return this.#executor.outsideHandlers(() =>
      shutDown({
        shutdownTimeoutMs: this.#options.settings.shutdownTimeoutMs,
        stopClaiming: () => this.#stopClaiming(),
        idle: () => this.#executor.idle(),
        abort: (reason) => this.#executor.abort(reason),
        abandon: () => this.#abandon(),
        drain: (signal) => this.#completer.drain(signal),
        close: () => this.#close(),
      }),
    )
  }

  async #stopClaiming(): Promise<void> {
    this.#stopping = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#executor.releaseCollected()
    await Promise.all([...this.#claimLoops, ...this.#maintenance].map((service) => service.stop()))
  }

  #abandon(): number {
    const abandoned = this.#executor.abandon()
    if (abandoned.length > 0) {
      const kinds = [...new Set(abandoned.map(({ job }) => job.kind))]
      const text = 'handlers ignored their signal at shutdown; their jobs are given back and will run again'
      this.#options.log.warn(text, { jobs: abandoned.length, kinds })
    }
    return abandoned.length
  }

  async #close(): Promise<void> {
    this.#completer.stop()
    await this.#keeper.stop()
    await within(LAST_FLUSH_WAIT_MS, () => this.#flusher.stop())
    await this.#options.close()
  }

  #claimed(claim: ClaimedJobs): void {
    const jobs = [...this.#leases.hold(claim).jobs]
    if (this.#stopping) {
      this.#executor.release(jobs)
      return
    }
    const now = this.#options.clock.monotonicMs()
    for (const { job } of jobs) this.#numbers.started(job, job.waitMs ?? 0, now)
    this.#executor.start(jobs)
  }

  #settled(held: HeldJob, outcome: Outcome): void {
    this.#leases.drop(held)
    this.#ended(held, outcome.type)
    // Saves the wait for the next poll when we do not listen.
    if (outcome.type === 'retry' || outcome.type === 'snooze')
      this.#wakeups.get(held.lease.queue)?.hintIn(outcome.delayMs)
  }

  /** The database knows that the job does not run any more. */
  #ended({ job, lease }: HeldJob, outcome: Outcome['type']): void {
    this.#wakeups.get(lease.queue)?.slotFreed({ keyed: job.key !== undefined })
    this.#count(job, outcome)
  }

  #count(job: Job, outcome: Outcome['type']): void {
    const now = this.#options.clock.monotonicMs()
    if (outcome === 'complete') this.#numbers.settled(job, 'completed', now)
    else if (outcome === 'retry' || outcome === 'discard') this.#numbers.settled(job, 'failed', now)
  }

  #makeClaimLoop(queue: string): ClaimLoop {
    const { settings, kinds, workerId, claimStore, notifications, clock, random } = this.#options
    const wakeup = new Wakeup({
      clock,
      random,
      pollMinMs: settings.pollMinMs,
      // While notifications arrive the poll is a safety net, so the cost of several queues need not add up.
      pollMaxMs: () =>
        Math.min(POLL_MAX_MS, settings.pollMaxMs * (notifications?.connected ? settings.queues.length : 1)),
      isBusy: () => this.#slots.taken > 0,
    })
    this.#wakeups.set(queue, wakeup)
    const what = (name: string) => `the claim from queue ${JSON.stringify(name)}`
    return new ClaimLoop({
      queue,
      kinds,
      workerId,
      batchMax: settings.claimBatchMax,
      leaseMs: settings.leaseMs,
      listening: notifications !== undefined,
      store: claimStore,
      slots: this.#slots,
      wakeup,
      completer: this.#completer,
      clock,
      random,
      listener: {
        claimed: (claim) => this.#claimed(claim),
        observed: (event) => {
          this.#lastClaimMs = clock.monotonicMs()
          this.#observe(settings.observe.claim, event)
        },
        failed: (name, error) => this.#errors.failed(what(name), error),
        recovered: (name) => this.#errors.succeeded(what(name)),
      },
    })
  }

  #makeCompleter(): Completer {
    const { settings, settleStore, clock, random, log } = this.#options
    const what = (queue: string) => `settling jobs of queue ${JSON.stringify(queue)}`
    return new Completer({
      store: settleStore,
      clock,
      random,
      listener: {
        settled: (held, outcome) => this.#settled(held, outcome),
        lost: (held) => {
          this.#leases.drop(held)
          this.#lost.report(held)
        },
        unconfirmed: (held) => {
          this.#leases.drop(held)
          log.info('a job was gone when its outcome was sent again; the first try had most likely been recorded', {
            jobId: held.job.id,
          })
        },
        refused: (held, error) => {
          held.lease.refuse()
          this.#leases.drop(held)
          const fields = { jobId: held.job.id, kind: held.job.kind, error: describeError(error) }
          log.error('the database refuses the outcome of a job; it runs again when its lease has expired', fields)
        },
        flushed: (event) => this.#observe(settings.observe.settle, event),
        failed: (queue, error) => this.#errors.failed(what(queue), error),
        recovered: (queue) => this.#errors.succeeded(what(queue)),
      },
    })
  }

  #makeExecutor(): Executor {
    const { handlers, settleStore, transactions, log, clock, random } = this.#options
    const failures = new FailureLog({ log, clock })
    return new Executor({
      handlers,
      leases: this.#leases,
      completer: this.#completer,
      store: settleStore,
      transactions,
      log,
      random,
      slotFreed: () => this.#slots.free(),
      leaseLost: (held) => this.#lost.report(held),
      decided: (job, outcome) => failures.decided(job, outcome),
      began: (held) => this.#numbers.began(held, held.job, clock.monotonicMs()),
      ended: (held) => this.#numbers.ended(held, clock.monotonicMs()),
      completedInTransaction: (held) => this.#ended(held, 'complete'),
    })
  }

  #makeKeeper(): Keeper {
    const { settings, settleStore, clock, log } = this.#options
    const what = 'the heartbeat'
    return new Keeper({
      store: settleStore,
      leases: this.#leases,
      leaseMs: settings.leaseMs,
      heartbeatMs: settings.heartbeatMs,
      clock,
      listener: {
        // Only jobs that still run: what waits to be settled is reported by the completer.
        lost: (lease) => {
          for (const held of this.#executor.running) if (held.lease === lease) this.#lost.report(held)
        },
        distrusted: (lease) => {
          const fields = { leaseId: lease.id, jobs: lease.size, leaseMs: settings.leaseMs }
          log.warn('a lease could not be extended in time; its handlers are aborted before others run the jobs', fields)
        },
        blocked: (blockedMs) => {
          const text =
            'the event loop was blocked for more than half a lease, so no heartbeat could be sent; ' +
            'let the handlers yield, move their computation to a worker thread, or raise leaseMs'
          const kinds = this.#executor.runningKinds
          log.warn(text, { blockedMs: Math.round(blockedMs), leaseMs: settings.leaseMs, kinds })
        },
        failed: (error) => this.#errors.failed(what, error),
        recovered: () => this.#errors.succeeded(what),
      },
    })
  }

  #makeFlusher(): Flusher {
    const { settings, kinds, workerId, numbersStore, clock, random } = this.#options
    const what = 'the record of the numbers'
    return new Flusher({
      store: numbersStore,
      aggregator: this.#numbers,
      workerId,
      queues: settings.queues,
      kinds,
      slots: settings.concurrency,
      running: () => this.running,
      clock,
      random,
      succeeded: () => this.#errors.succeeded(what),
      onError: (error) => this.#errors.failed(what, error),
    })
  }

  #makeReclaimer(): Reclaimer {
    const { settings, settleStore, random, log } = this.#options
    const what = 'the search for expired leases'
    return new Reclaimer({
      store: settleStore,
      intervalMs: settings.reclaimIntervalMs,
      random,
      reclaimed: ({ retried, discarded, nextDueMs }) => {
        log.info('jobs of expired leases were reclaimed', { retried, discarded })
        if (nextDueMs !== undefined) for (const wakeup of this.#wakeups.values()) wakeup.hintIn(nextDueMs)
      },
      succeeded: () => this.#errors.succeeded(what),
      onError: (error) => this.#errors.failed(what, error),
    })
  }

  #makeMaintainer(): Maintainer {
    const { claimStore, numbersStore, random } = this.#options
    const what = 'the maintenance of the tables'
    return new Maintainer({
      store: claimStore,
      numbers: numbersStore,
      random,
      succeeded: () => this.#errors.succeeded(what),
      onError: (error) => this.#errors.failed(what, error),
    })
  }

  /** Tells the application. Its callbacks must not break what we are about to do. */
  #observe<Event>(callback: ((event: Event) => void) | undefined, event: Event): void {
    try {
      callback?.(event)
    } catch (error) {
      this.#options.log.error('a callback of the worker option observe threw', { error: describeError(error) })
    }
  }
}
