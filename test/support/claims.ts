import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { Connection } from '../../src/driver/connection.js'
import { DatabasePool } from '../../src/driver/pool.js'
import type { SqlQuery } from '../../src/driver/statement.js'
import type { Job, JobRecord, NewJob } from '../../src/job/job.js'
import type { Outcome, Settlement } from '../../src/settle/outcome.js'
import { AdminStore } from '../../src/store/admin-store.js'
import { PgStore } from '../../src/store/pg-store.js'
import type { Claim, ClaimRequest, Queryable } from '../../src/store/store.js'
import { createSharedSchema, type TestSchema } from './database.js'
import { newJob, newJobs, uniqueName } from './factory.js'

/** A store with connections of its own, as a worker has them. */
export interface OpenStore extends AsyncDisposable {
  readonly store: PgStore
  readonly admin: AdminStore
}

export function openStore(schema: TestSchema, config: pg.ClientConfig = {}): OpenStore {
  const client = { connectionString: schema.connectionString, ...config }
  const connection = new Connection({ client })
  const pool = new DatabasePool({ client, max: 2 })
  const session = {
    query: (query: SqlQuery) => connection.query(query),
    pipeline: (queries: readonly SqlQuery[]) => connection.pipeline(queries),
    transaction: <Result>(run: (client: Queryable) => Promise<Result>) =>
      pool.transaction((client) => run(client as unknown as Queryable)),
  }
  return {
    store: new PgStore(session, schema.schema),
    admin: new AdminStore(session.transaction, schema.schema),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([connection.stop(), pool.end()])
    },
  }
}

/** Jobs under one lease, as their worker holds them. */
export class HeldClaim implements Claim {
  readonly queue: string
  readonly leaseId: string
  readonly jobs: readonly Job[]
  readonly nextDueMs?: number

  constructor(queue: string, leaseId: string, claim: Claim) {
    this.queue = queue
    this.leaseId = leaseId
    this.jobs = claim.jobs
    if (claim.nextDueMs !== undefined) this.nextDueMs = claim.nextDueMs
  }

  get ids(): string[] {
    return this.jobs.map(({ id }) => id)
  }

  get tenants(): string[] {
    return this.jobs.map(({ tenant }) => tenant)
  }

  settlements(outcome: Outcome = { type: 'complete' }): Settlement[] {
    return this.ids.map((jobId) => ({ jobId, leaseId: this.leaseId, outcome }))
  }
}

export type ClaimOptions = Partial<Omit<ClaimRequest, 'queue' | 'count'>>

/** One queue in a shared schema, and what a worker does to it. */
export class TestQueue {
  readonly name: string
  readonly store: PgStore

  constructor(store: PgStore, name: string) {
    this.store = store
    this.name = name
  }

  enqueue(...jobs: Partial<NewJob>[]): Promise<string[]> {
    return this.store.enqueue(jobs.map((job) => newJob({ queue: this.name, ...job })))
  }

  /** Jobs of one tenant in one statement. */
  enqueueMany(count: number, overrides: Partial<NewJob> = {}): Promise<string[]> {
    return this.store.enqueue(newJobs(count, { queue: this.name, ...overrides }))
  }

  async claim(count = 1, options: ClaimOptions = {}): Promise<HeldClaim> {
    const request = { ...CLAIM, leaseId: randomUUID(), ...options, queue: this.name, count }
    return new HeldClaim(this.name, request.leaseId, await this.store.claim(request))
  }

  /** Claims until there is nothing more, and answers with all jobs in the order in which they were claimed. */
  async claimAll(count = 1, options: ClaimOptions = {}): Promise<Job[]> {
    const jobs: Job[] = []
    for (;;) {
      const claim = await this.claim(count, options)
      if (claim.jobs.length === 0) return jobs
      jobs.push(...claim.jobs)
    }
  }

  /** Settles the whole claim alike and removes its lease; answers with the ids that were accepted. */
  async settle(claim: HeldClaim, outcome: Outcome = { type: 'complete' }): Promise<string[]> {
    return [...(await this.store.settle(this.name, claim.settlements(outcome), [claim.leaseId]))]
  }

  async record(id: string | undefined): Promise<JobRecord> {
    const record = id === undefined ? undefined : await this.store.job(id)
    if (!record) throw new Error(`expected job ${id} to exist`)
    return record
  }
}

const CLAIM = { workerId: 'test', kinds: ['send-invoice'], leaseMs: 60_000, listening: false }

/** A schema for all tests of one file, each of which takes a queue of its own. */
export class SharedDatabase {
  #schema: (TestSchema & { end(): Promise<void> }) | undefined
  #open: OpenStore | undefined

  /** On the server of all tests, or on one of the test's own. */
  async start(connectionString?: string): Promise<void> {
    this.#schema = await createSharedSchema(connectionString === undefined ? {} : { connectionString })
    this.#open = openStore(this.#schema)
  }

  async stop(): Promise<void> {
    await this.#open?.[Symbol.asyncDispose]()
    await this.#schema?.drop()
  }

  /** Ends the connections and leaves the schema. */
  async end(): Promise<void> {
    await this.#open?.[Symbol.asyncDispose]()
    await this.#schema?.end()
  }

  get schema(): TestSchema {
    if (!this.#schema) throw new Error('the database is used outside of a test')
    return this.#schema
  }

  get store(): PgStore {
    if (!this.#open) throw new Error('the database is used outside of a test')
    return this.#open.store
  }

  get admin(): AdminStore {
    if (!this.#open) throw new Error('the database is used outside of a test')
    return this.#open.admin
  }

  queue(name = uniqueName('queue')): TestQueue {
    return new TestQueue(this.store, name)
  }

  async session(): Promise<Session> {
    return new Session(await this.schema.connect(), this)
  }

  /** Rows of our tables; `:schema` stands for the schema. */
  query<Row = Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.schema.query<Row>(this.sql(text), values)
  }

  sql(text: string): string {
    return text.replaceAll(':schema', this.schema.quoted)
  }

  /** One value. */
  async value<Value>(text: string, values: readonly unknown[] = []): Promise<Value> {
    const [row] = await this.query<Record<string, Value>>(text, values)
    const [value] = Object.values(row ?? {})
    if (value === undefined) throw new Error(`expected a value from ${text}`)
    return value
  }
}

/** Another session, whose transactions a test opens and ends step by step. */
export class Session {
  readonly #client: pg.Client
  readonly #database: SharedDatabase

  constructor(client: pg.Client, database: SharedDatabase) {
    this.#client = client
    this.#database = database
  }

  get client(): Queryable {
    return this.#client
  }

  async run<Row = Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#client.query(this.#database.sql(text), [...values])).rows as Row[]
  }

  /** A claim inside whatever transaction is open here; answers with the ids. */
  async claim(queue: string, count: number, kinds: readonly string[] = CLAIM.kinds): Promise<string[]> {
    const leaseId = randomUUID()
    const values = [queue, leaseId, 'session', kinds, count, 60_000, false]
    await this.run('select * from :schema.claim_v1($1, $2, $3, $4, $5, $6, $7)', values)
    return (await this.run<{ id: string }>('select id from :schema.claimed_v1($1)', [leaseId])).map(({ id }) => id)
  }

  /** Its server process waits for a lock. */
  async isWaiting(): Promise<boolean> {
    const { processID } = this.#client as unknown as { readonly processID: number }
    return this.#database.value(
      `select coalesce(wait_event_type = 'Lock', false) from pg_stat_activity where pid = $1`,
      [processID],
    )
  }
}

/** Call it at the top of a file. */
export function useSharedDatabase(): SharedDatabase {
  const database = new SharedDatabase()
  beforeAll(() => database.start())
  afterAll(() => database.stop())
  return database
}
