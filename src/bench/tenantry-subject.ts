import { assert } from '../assert.js'
import { Connection } from '../driver/connection.js'
import type { NewJob } from '../job/job.js'
import { ENQUEUE_STATEMENT_MAX } from '../limits.js'
import { systemRandom } from '../random.js'
import type { Strategy } from '../settings/settings.js'
import { PgStore } from '../store/pg-store.js'
import { Tenantry } from '../tenantry.js'
import { govern, type Parked } from './governance.js'
import { benchQuery } from './queries.js'
import type { Scenario } from './scenarios.js'
import type { BenchSession } from './session.js'
import type { Claimant, Claimed, QueueCount, Subject } from './subject.js'
import { WorkerNumbers } from './worker-numbers.js'

export interface SubjectOptions {
  readonly scenario: Scenario
  readonly connectionString: string
  readonly session: BenchSession
  /** Not there yet, and nobody else's. */
  readonly schema: string
  /** Whether every connection also records numbers, as a worker does. */
  readonly numbers?: boolean
}

const QUEUE = 'default'
const KIND = 'noop'
const LEASE_MS = 60_000

/** Of jobs that run during the whole measurement. */
const HELD_LEASE_MS = 3_600_000

/** The most that a claim may ask for, so that tenants are parked soon. */
const PARKING_BATCH = 500

const CLAIM = { queue: QUEUE, kinds: [KIND], listening: false } as const

/** Rows of one statement that prepares data. */
const ROWS = 100_000

/** The library itself: the same store over the same connection as in a worker. */
export class TenantrySubject implements Subject {
  readonly strategy: Strategy
  readonly #options: SubjectOptions
  /** Jobs enqueued so far. */
  #enqueued = 0

  constructor(strategy: Strategy, options: SubjectOptions) {
    this.strategy = strategy
    this.#options = options
  }

  async prepare(): Promise<void> {
    const { session, schema, scenario } = this.#options
    const { governance = {} } = scenario
    await session.migrate(schema)
    await session.run('without_autovacuum', { schema })
    {
      await using tenantry = new Tenantry({ connectionString: this.#options.connectionString, schema })
      await tenantry.configureQueue(QUEUE, { strategy: this.strategy, history: scenario.history })
      await govern(tenantry, governance, { queue: QUEUE, kind: KIND, tenants: tenantNames(scenario) })
    }
    for (const values of ranges(scenario.historyJobs)) await session.run('subject_finished', { schema, values })
    if (scenario.idleTenants > 0) await this.#makeIdleTenants()
    if (governance.parked && governance.parked.tenants > 0) await this.#makeParkedTenants(governance.parked)
    await session.run('subject_vacuum_settings', { schema })
  }

  async load(jobs: number): Promise<void> {
    const { session, schema, scenario } = this.#options
    if (scenario.fresh) {
      await session.run('subject_empty', { schema })
      this.#enqueued = 0
    }
    const missing = jobs - (await this.count()).waiting
    await this.#withStore(async (store) => {
      for (let left = missing; left > 0; left -= ENQUEUE_STATEMENT_MAX) {
        await store.enqueue(this.#nextJobs(Math.min(left, ENQUEUE_STATEMENT_MAX), jobs))
      }
    })
    await this.#vacuum({ analyze: true })
  }

  connect(applicationName: string): Claimant {
    const { connectionString, schema, scenario, numbers = false } = this.#options
    const connection = new Connection({ client: { connectionString, application_name: applicationName } })
    return new TenantryClaimant(connection, { schema, batch: scenario.batch, numbers })
  }

  async count(): Promise<QueueCount> {
    const { session, schema } = this.#options
    const [row] = await session.run('subject_count', { schema })
    return { waiting: Number(row?.['waiting']), running: Number(row?.['running']) }
  }

  vacuum(): Promise<void> {
    return this.#vacuum({ analyze: false })
  }

  async #vacuum(options: { readonly analyze: boolean }): Promise<void> {
    const { session, schema } = this.#options
    const tables = await session.run('subject_tables', { schema })
    await session.vacuum(
      tables.map(({ name }) => name ?? ''),
      options,
    )
  }

  /** One tenant has a job and then none; the idle tenants are made in its likeness. */
  async #makeIdleTenants(): Promise<void> {
    const { session, schema, scenario } = this.#options
    await this.#withStore(async (store) => {
      await store.enqueue(this.#nextJobs(1, 1))
    })
    const claimant = this.connect('tenantry-bench-idle')
    try {
      await claimant.settle(await claimant.claim())
    } finally {
      await claimant.close()
    }
    for (const values of ranges(scenario.idleTenants)) await session.run('subject_idle_tenants', { schema, values })
    const lanes = await session.number('subject_idle_lanes', 'lanes', { schema })
    assert(lanes > scenario.idleTenants, 'every idle tenant has a lane')
  }

  /** Tenants that run as many jobs as they may, and have been found to: their first jobs run on during the measurement. */
  async #makeParkedTenants({ tenants, backlog }: Parked): Promise<void> {
    const { session, schema } = this.#options
    const values = [tenants]
    await session.run('subject_parked_tenants', { schema, values })
    await this.#withStore(async (store) => {
      const claim = { ...CLAIM, leaseMs: HELD_LEASE_MS, workerId: 'bench:held', count: PARKING_BATCH }
      // From now on the kind is known, and enqueues signal their lanes.
      await store.claim({ ...claim, leaseId: systemRandom.uuid() })
      for (const [from, to] of ranges(tenants * (backlog + 1), ENQUEUE_STATEMENT_MAX)) {
        const tenantOf = (number: number) => `parked-${Math.floor((number - 1) / (backlog + 1))}`
        await store.enqueue(numbersOf(from, to).map((number) => newJob(number, tenantOf(number))))
      }
      for (let claims = 0; (await session.number('subject_parked_left', 'left', { schema, values })) > 0; claims += 1) {
        assert(claims <= tenants, 'each claim finds tenants that are not parked yet')
        await store.claim({ ...claim, leaseId: systemRandom.uuid() })
      }
    })
  }

  #nextJobs(count: number, total: number): NewJob[] {
    const { scenario } = this.#options
    const tenants = tenantsOf(scenario, total)
    this.#enqueued += count
    return numbersOf(this.#enqueued - count + 1, this.#enqueued).map((number) => ({
      ...newJob(number, `tenant-${number % tenants}`),
      ...(scenario.governance?.keyed && { key: `key-${number}` }),
    }))
  }

  async #withStore<T>(use: (store: PgStore) => Promise<T>): Promise<T> {
    const { connectionString, schema } = this.#options
    const connection = new Connection({ client: { connectionString } })
    try {
      return await use(new PgStore(connection, schema))
    } finally {
      await connection.stop()
    }
  }
}

class TenantryClaimant implements Claimant {
  readonly #connection: Connection
  readonly #store: PgStore
  readonly #batch: number
  readonly #workerId = `bench:${systemRandom.uuid().slice(0, 8)}`
  readonly #numbers: WorkerNumbers | undefined

  constructor(
    connection: Connection,
    options: { readonly schema: string; readonly batch: number; readonly numbers: boolean },
  ) {
    const { schema, batch, numbers } = options
    this.#connection = connection
    this.#store = new PgStore(connection, schema)
    this.#batch = batch
    const presence = { schema, workerId: this.#workerId, queues: [QUEUE], kinds: [KIND] }
    this.#numbers = numbers ? new WorkerNumbers(connection, presence) : undefined
  }

  async claim(): Promise<Claimed> {
    const leaseId = systemRandom.uuid()
    const { jobs } = await this.#store.claim({
      ...CLAIM,
      leaseId,
      workerId: this.#workerId,
      count: this.#batch,
      leaseMs: LEASE_MS,
    })
    this.#numbers?.claimed(jobs)
    return { jobIds: jobs.map(({ id }) => id), fence: leaseId }
  }

  async settle({ jobIds, fence: leaseId }: Claimed): Promise<ReadonlySet<string>> {
    const outcome = { type: 'complete' } as const
    const settlements = jobIds.map((jobId) => ({ jobId, leaseId, outcome }))
    const accepted = await this.#store.settle(QUEUE, settlements, [leaseId])
    this.#numbers?.settled(jobIds)
    await this.#numbers?.flushIfDue()
    return accepted
  }

  async flushStatistics(): Promise<void> {
    await this.#connection.query({ text: benchQuery('flush_statistics') })
  }

  async close(): Promise<void> {
    await this.#connection.stop()
  }
}

/** Where every job has a tenant of its own, the jobs of the warm-up have too. */
export function tenantsOf({ activeTenants, backlog }: Scenario, total: number): number {
  return activeTenants === backlog ? total : activeTenants
}

function tenantNames(scenario: Scenario): readonly string[] {
  const count = tenantsOf(scenario, scenario.backlog)
  return Array.from({ length: count }, (_, number) => `tenant-${number}`)
}

function newJob(number: number, tenant: string): NewJob {
  return {
    queue: QUEUE,
    kind: KIND,
    tenant,
    payload: JSON.stringify({ number, filler: 'x'.repeat(100) }),
    priority: 0,
    maxAttempts: 5,
  }
}

function numbersOf(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

/** The numbers from 1 to `count`, as pairs of the first and the last of each portion. */
export function ranges(count: number, size = ROWS): readonly (readonly [number, number])[] {
  const portions = Math.ceil(count / size)
  return Array.from(
    { length: portions },
    (_, index) => [index * size + 1, Math.min(count, (index + 1) * size)] as const,
  )
}
