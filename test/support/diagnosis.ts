import { afterAll, beforeAll } from 'vitest'
import type { Why, WhyTarget } from '../../src/diagnosis/why.js'
import type { NewJob } from '../../src/job/job.js'
import { Tenantry } from '../../src/tenantry.js'
import type { ClaimOptions, HeldClaim, Session, SharedDatabase, TestQueue } from './claims.js'
import { uniqueName } from './factory.js'

/** A queue about which it is asked why. */
export class AskedQueue {
  readonly queue: TestQueue
  readonly worker = uniqueName('worker')
  readonly #database: SharedDatabase
  readonly #tenantry: () => Tenantry

  constructor(database: SharedDatabase, tenantry: () => Tenantry) {
    this.#database = database
    this.#tenantry = tenantry
    this.queue = database.queue()
  }

  get name(): string {
    return this.queue.name
  }

  /** A worker says that it is there, as those that run do every few seconds. */
  async beat(options: { kinds?: readonly string[]; slots?: number; worker?: string } = {}): Promise<void> {
    const { kinds = ['send-invoice'], slots = 100, worker = this.worker } = options
    await this.#database.query('select :schema.beat_v1($1, $2, $3, $4, 0, 0)', [worker, [this.name], kinds, slots])
  }

  /** The id of one job. */
  async enqueue(job: Partial<NewJob> = {}): Promise<string> {
    const [id] = await this.queue.enqueue(job)
    if (id === undefined) throw new Error('expected an id')
    return id
  }

  claim(count = 1, options: ClaimOptions = {}): Promise<HeldClaim> {
    return this.queue.claim(count, { workerId: this.worker, ...options })
  }

  why(job: string): Promise<Why> {
    return this.ask({ job })
  }

  whyTenant(tenant: string, kind?: string): Promise<Why> {
    return this.ask({ queue: this.name, tenant, ...(kind !== undefined && { kind }) })
  }

  ask(target: WhyTarget): Promise<Why> {
    return this.#tenantry().why(target)
  }

  async set(settings: object): Promise<void> {
    await this.#database.query('select :schema.configure_queue($1, $2)', [this.name, settings])
  }

  async setTenant(tenant: string, settings: object): Promise<void> {
    await this.#database.query('select :schema.configure_tenant($1, $2, $3)', [this.name, tenant, settings])
  }

  async setKind(kind: string, settings: object): Promise<void> {
    await this.#database.query('select :schema.configure_kind($1, $2, $3)', [this.name, kind, settings])
  }

  async setKey(key: string, settings: object): Promise<void> {
    await this.#database.query('select :schema.configure_key($1, $2, $3)', [this.name, key, settings])
  }

  async pause(scope: object = {}): Promise<void> {
    await this.#database.query('select :schema.pause($1, $2)', [this.name, scope])
  }

  async resume(scope: object = {}): Promise<void> {
    await this.#database.query('select :schema.resume($1, $2)', [this.name, scope])
  }

  /** Takes the queue's turn, as a claim does, in whatever transaction is open in the session. */
  async takeTurn(session: Session): Promise<void> {
    const ring = `${this.#database.schema.quoted}.ring`
    await session.run('select pg_advisory_xact_lock($1::regclass::oid::integer, hashtext($2))', [ring, this.name])
  }
}

/** Call it at the top of a file; answers with a maker of queues. */
export function useAskedQueues(database: SharedDatabase): (settings?: { worker: boolean }) => Promise<AskedQueue> {
  let tenantry: Tenantry | undefined
  beforeAll(() => {
    const { connectionString, schema } = database.schema
    tenantry = new Tenantry({ connectionString, schema })
  })
  afterAll(() => tenantry?.close())
  return async ({ worker } = { worker: true }) => {
    const asked = new AskedQueue(database, () => {
      if (!tenantry) throw new Error('asked outside of a test')
      return tenantry
    })
    if (worker) await asked.beat()
    return asked
  }
}
