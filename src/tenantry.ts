import { type ResolvedTenantryOptions, resolveOptions, type TenantryOptions } from './config.js'
import { toTenantryError } from './driver/pg-errors.js'
import { DatabasePool } from './driver/pool.js'
import type { SqlQuery } from './driver/statement.js'
import { ConfigurationError } from './errors.js'
import type { JobDefinition } from './job/define-job.js'
import type { JobRecord } from './job/job.js'
import { type EnqueueOptions, newJob } from './job/new-job.js'
import { checkKnownOptions, choiceOption, expected, nameOption, numberOption } from './options.js'
import { reasonText } from './settle/planned-exit.js'
import { migrate } from './store/migrate.js'
import { PgStore } from './store/pg-store.js'
import { HISTORY_MODES, type Queryable, type QueueSettings, STRATEGIES } from './store/store.js'
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

/** What may be set for a tenant. */
export interface TenantSettings {
  /** Relative share of the queue, 0.001 to 1,000. Default 1. */
  readonly weight: number
}

/** The client: enqueues jobs, makes workers, and changes settings. One per process will do. */
export class Tenantry {
  readonly #options: ResolvedTenantryOptions
  readonly #pool: DatabasePool
  readonly #store: PgStore
  /** Those that have not stopped. */
  readonly #workers = new Set<Worker>()
  #closed = false

  constructor(options: TenantryOptions = {}) {
    this.#options = resolveOptions(options)
    const { client, pool, poolMax, schema, connectionHint, logger } = this.#options
    this.#pool = new DatabasePool(pool ? { pool, logger } : { client, max: poolMax, logger })
    this.#store = new PgStore(poolSession(this.#pool), schema, connectionHint)
  }

  /** Creates or upgrades the schema. Any number of processes may call it at once: one does the work, the others wait. */
  async migrate(): Promise<{ readonly applied: readonly number[] }> {
    const { schema, connectionHint, logger } = this.#options
    try {
      return await this.#pool.session((client) => migrate(client, { schema, logger }))
    } catch (error) {
      throw toTenantryError(error, schema, connectionHint)
    }
  }

  /**
   * Enqueues one job and resolves with its id once it is committed, or at once inside `transaction`. Rejects with a
   * `PayloadError` or `ConfigurationError` before any SQL is sent, so that a transaction stays usable.
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
  async cancel(id: string, reason = 'cancelled by the application'): Promise<boolean> {
    return this.#store.cancel(jobId(id), reasonText('cancel', reason))
  }

  /** Changes a queue; what is not named stays as it is. Acts on the jobs that wait, at the next claim. */
  async configureQueue(name: string, settings: Partial<QueueSettings>): Promise<QueueSettings> {
    checkKnownOptions('configureQueue', settings, ['strategy', 'history'])
    const { strategy, history } = settings
    return this.#store.configureQueue(nameOption('queue', name), {
      ...(strategy !== undefined && { strategy: choiceOption('strategy', strategy, STRATEGIES) }),
      ...(history !== undefined && { history: choiceOption('history', history, HISTORY_MODES) }),
    })
  }

  /** Changes a tenant's settings in one queue. Acts on the jobs that wait, at the next claim. */
  async configureTenant(queue: string, tenant: string, settings: TenantSettings): Promise<void> {
    checkKnownOptions('configureTenant', settings, ['weight'])
    const weight = numberOption('weight', settings.weight, { min: 0.001, max: 1_000 })
    await this.#store.configureTenant(nameOption('queue', queue), nameOption('tenant', tenant), weight)
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

/** The pool as the store sees it. */
function poolSession(pool: DatabasePool) {
  return {
    query: (query: SqlQuery) => pool.query(query),
    transaction: <Result>(run: (client: Queryable) => Promise<Result>) =>
      pool.transaction((client) => run(client as unknown as Queryable)),
  }
}

function jobId(id: unknown): string {
  if (typeof id === 'string' && /^\d{1,19}$/.test(id) && BigInt(id) < 2n ** 63n) return id
  throw expected('the id of a job', 'the decimal string that enqueue returned', id)
}
