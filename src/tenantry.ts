import { type ResolvedTenantryOptions, resolveOptions, type TenantryOptions } from './config.js'
import { whyTarget } from './diagnosis/target.js'
import type { Why, WhyTarget } from './diagnosis/why.js'
import { toTenantryError } from './driver/pg-errors.js'
import { DatabasePool } from './driver/pool.js'
import type { SqlQuery } from './driver/statement.js'
import { ConfigurationError } from './errors.js'
import type { JobDefinition } from './job/define-job.js'
import { type Scope, scopeOption } from './job/filter.js'
import type { JobRecord } from './job/job.js'
import { jobId } from './job/job-id.js'
import { type EnqueueOptions, newJob } from './job/new-job.js'
import { inOrder, type QueueNumbers, type TenantNumbers } from './numbers/numbers.js'
import { type QueuesOptions, queuesOptions, type TenantsOptions, tenantsOptions } from './numbers/options.js'
import { cancelAll, drain, moveJobs, purge } from './operations/operations.js'
import type { CancelAllOptions, CancelOptions, DrainOptions, MoveOptions, PurgeOptions } from './operations/options.js'
import { cancelReason } from './operations/options.js'
import { checkKnownOptions, expected, nameOption } from './options.js'
import { groupSettings, keySettings, kindSettings, queueSettings, tenantSettings } from './settings/check.js'
import type {
  Configured,
  GroupSettings,
  KeySettings,
  KindSettings,
  QueueSettings,
  SettingsChange,
  TenantSettings,
} from './settings/settings.js'
import { AdminStore } from './store/admin-store.js'
import { DiagnosisStore } from './store/diagnosis-store.js'
import { migrate } from './store/migrate.js'
import { NumbersStore } from './store/numbers-store.js'
import { PgStore } from './store/pg-store.js'
import type { Queryable } from './store/store.js'
import { transactionOption } from './transaction-option.js'
import { resolveWorkerOptions, type WorkerOptions } from './worker/options.js'
import { Worker } from './worker/worker.js'
import { workerDependencies } from './worker-dependencies.js'

export interface InTransaction {
  /** The caller's open transaction: a node-postgres client, or anything with its `query`. The job exists once it commits. */
  readonly transaction?: Queryable
}

/** One job of `enqueueMany`. */
export interface JobToEnqueue<Input> extends EnqueueOptions {
  readonly definition: JobDefinition<Input, unknown>
  readonly payload: NoInfer<Input>
}

/** The client: enqueues jobs, makes workers, and changes settings. One per process will do. */
export class Tenantry {
  readonly #options: ResolvedTenantryOptions
  readonly #pool: DatabasePool
  readonly #store: PgStore
  readonly #admin: AdminStore
  readonly #diagnosis: DiagnosisStore
  readonly #numbers: NumbersStore
  /** Those that have not stopped. */
  readonly #workers = new Set<Worker>()
  #closed = false

  constructor(options: TenantryOptions = {}) {
    this.#options = resolveOptions(options)
    const { client, pool, poolMax, schema, connectionAdvice, logger } = this.#options
    this.#pool = new DatabasePool(pool ? { pool, logger } : { client, max: poolMax, logger })
    const session = poolSession(this.#pool)
    this.#store = new PgStore(session, schema, connectionAdvice)
    this.#admin = new AdminStore(session.transaction, schema, connectionAdvice)
    this.#diagnosis = new DiagnosisStore(session, schema, connectionAdvice)
    this.#numbers = new NumbersStore(session, schema, connectionAdvice)
  }

  /** Creates or upgrades the schema. Any number of processes may call it at once: one does the work, the others wait. */
  async migrate(): Promise<{ readonly applied: readonly number[] }> {
    const { schema, connectionAdvice, logger } = this.#options
    try {
      return await this.#pool.session((client) => migrate(client, { schema, logger }))
    } catch (error) {
      throw toTenantryError(error, schema, connectionAdvice)
    }
  }

  /**
   * Enqueues one job and resolves with its id once it is committed, or at once inside `transaction`. Rejects with a
   * `PayloadError` or `ConfigurationError` before any SQL is sent, so that a transaction stays usable, and with a
   * `QuotaExceededError` where too many jobs wait already.
   */
  async enqueue<Input>(
    definition: JobDefinition<Input, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueOptions & InTransaction,
  ): Promise<string> {
    const { transaction: given, ...rest } = options ?? {}
    const transaction = transactionOption(given)
    const job = await newJob(definition, payload, rest, this.#options)
    const [id] = await this.#store.enqueue([job], transaction)
    if (id === undefined) throw new Error('broken invariant: an enqueue without an id')
    return id
  }

  /** Enqueues any number of jobs, all or none, a statement for each 10,000; ids in the order of the jobs. */
  async enqueueMany<Input>(jobs: readonly JobToEnqueue<Input>[], options: InTransaction = {}): Promise<string[]> {
    checkKnownOptions('enqueueMany', options, ['transaction'])
    const transaction = transactionOption(options.transaction)
    if (!Array.isArray(jobs)) throw expected('the first argument of enqueueMany', 'an array of jobs', jobs)
    const rows = []
    for (const [index, job] of jobs.entries()) {
      const { definition, payload, ...rest } = checkJob(job, index)
      rows.push(await newJob(definition, payload, rest, this.#options))
    }
    return this.#store.enqueue(rows, transaction)
  }

  /** Makes a worker; register its handlers, then start it. */
  worker(options: WorkerOptions = {}): Worker {
    const settings = resolveWorkerOptions(options)
    if (this.#closed) throw new ConfigurationError('this client was closed; make a new Tenantry for further workers')
    const dependencies = workerDependencies(this.#options, this.#pool, settings)
    const close = async () => {
      this.#workers.delete(worker)
      await dependencies.close()
    }
    const worker = new Worker(settings, { ...dependencies, close })
    this.#workers.add(worker)
    return worker
  }

  /** One job by its id, whatever its state; undefined when it was never committed or its history is gone. */
  async job(id: string): Promise<JobRecord | undefined> {
    return this.#store.job(jobId(id))
  }

  /** Cancels a job that waits. False when it runs already, is finished, or does not exist. */
  async cancel(id: string, options: CancelOptions = {}): Promise<boolean> {
    return this.#store.cancel(jobId(id), cancelReason(options))
  }

  /**
   * Changes a queue, and resolves with what is set now. What is not named stays as it is, null restores the default. Acts on
   * the jobs that wait too, at the next claim; so do the other settings. Rejects with a `ConfigurationError` that names the
   * value and the range, also where the strategy cannot do what is asked.
   */
  async configureQueue(queue: string, change: SettingsChange<QueueSettings>): Promise<Configured<QueueSettings>> {
    return this.#admin.configureQueue(nameOption('queue', queue), queueSettings(change))
  }

  /** Changes a tenant in one queue: its weight, group, limits and objective. As `configureQueue`. */
  async configureTenant(
    queue: string,
    tenant: string,
    change: SettingsChange<TenantSettings>,
  ): Promise<Configured<TenantSettings>> {
    const checked = tenantSettings(change)
    return this.#admin.configureTenant(nameOption('queue', queue), nameOption('tenant', tenant), checked)
  }

  /** Changes a group of tenants in one queue. A group exists as soon as a tenant names it. As `configureQueue`. */
  async configureGroup(queue: string, group: string, change: SettingsChange<GroupSettings>): Promise<GroupSettings> {
    return this.#admin.configureGroup(nameOption('queue', queue), nameOption('group', group), groupSettings(change))
  }

  /** Limits a kind in one queue, across all tenants. As `configureQueue`. */
  async configureKind(
    queue: string,
    kind: string,
    change: SettingsChange<KindSettings>,
  ): Promise<Configured<KindSettings>> {
    return this.#admin.configureKind(nameOption('queue', queue), nameOption('kind', kind), kindSettings(change))
  }

  /** Limits a key in one queue, across all tenants and kinds. As `configureQueue`. */
  async configureKey(queue: string, key: string, change: SettingsChange<KeySettings>): Promise<KeySettings> {
    return this.#admin.configureKey(nameOption('queue', queue), nameOption('key', key), keySettings(change))
  }

  /**
   * Lets nothing more start of a queue, or of one tenant or one kind of it, on any worker, until `resume`. What runs goes on;
   * enqueueing goes on. A pause is stored, and a second one changes nothing. Pausing a tenant or a kind needs 'fair'.
   */
  async pause(queue: string, scope: Scope = {}): Promise<void> {
    await this.#admin.pause(nameOption('queue', queue), scopeOption('pause', scope))
  }

  /** Ends a pause of the same scope, however often it was called for. A queue, a tenant and a kind are paused separately. */
  async resume(queue: string, scope: Scope = {}): Promise<void> {
    await this.#admin.resume(nameOption('queue', queue), scopeOption('resume', scope))
  }

  /**
   * Why a job, or the next job of a tenant, does not run: the one rule that binds, its facts, both in words, and what would
   * change it. Looks and changes nothing. The rules, in their order: docs/why.md.
   */
  async why(target: WhyTarget): Promise<Why> {
    return this.#diagnosis.why(whyTarget(target))
  }

  /**
   * The tenants of a queue: what waits and runs, what they got in the last minutes, whether they are starved or noisy or
   * miss their objective. What workers count is at most some seconds old.
   */
  async tenants(options: TenantsOptions = {}): Promise<TenantNumbers[]> {
    const { queue, sort, numbers } = tenantsOptions(options)
    return inOrder(await this.#numbers.tenants(queue, numbers), sort)
  }

  /** The queues, or one of them, each with the numbers of its tenants added up. */
  async queues(options: QueuesOptions = {}): Promise<QueueNumbers[]> {
    const { queue, numbers } = queuesOptions(options)
    return this.#numbers.queues(queue, numbers)
  }

  /**
   * Waits until nothing of a queue, a tenant or a kind runs, having paused it (`until: 'idle'`), or until nothing of it waits
   * or runs (`until: 'empty'`). False when `timeoutMs` was over first; a pause stays on either way. Rejects with a
   * `ConfigurationError` where a tenant or a kind is to be paused in a queue whose strategy is not 'fair'.
   */
  async drain(queue: string, options: DrainOptions = {}): Promise<boolean> {
    return drain(this.#admin, nameOption('queue', queue), options)
  }

  /**
   * Cancels every job that waits, of a queue or of a tenant or a kind of it, a thousand at a time; what runs goes on, and so
   * does what is enqueued from now on. Safe while workers run. Resolves with how many.
   */
  async cancelAll(queue: string, options: CancelAllOptions = {}): Promise<number> {
    return cancelAll(this.#admin, nameOption('queue', queue), options)
  }

  /** Deletes jobs as `cancelAll` cancels them, without a trace; with `history: true` those that have ended too. */
  async purge(queue: string, options: PurgeOptions = {}): Promise<number> {
    return purge(this.#admin, nameOption('queue', queue), options)
  }

  /**
   * Moves every job that waits to another queue, as `cancelAll` chooses them. They keep their id, their attempts and their
   * place in the order; quotas of the other queue do not count. Resolves with how many. Rejects with a `ConfigurationError`
   * where both are the same queue.
   */
  async moveJobs(queue: string, toQueue: string, options: MoveOptions = {}): Promise<number> {
    return moveJobs(this.#admin, { from: nameOption('queue', queue), to: toQueue }, options)
  }

  /** Stops the workers made here, then closes the connections. A pool of the application's own stays open. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    await this.#pool.end()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function checkJob<Input>(job: JobToEnqueue<Input>, index: number): JobToEnqueue<Input> {
  if (typeof job === 'object' && job !== null) return job
  throw expected(`job ${index} of enqueueMany`, 'an object with definition, payload and tenant', job)
}

/** The pool as the stores see it. */
function poolSession(pool: DatabasePool) {
  return {
    query: (query: SqlQuery) => pool.query(query),
    // node-postgres types `query` with overloads, of which `Queryable` is the one that is used here.
    transaction: <Result>(run: (client: Queryable) => Promise<Result>) =>
      pool.transaction((client) => run(client as unknown as Queryable)),
  }
}
