import { Connection } from '../driver/connection.js'
import { systemRandom } from '../random.js'
import { column } from '../store/rows.js'
import { quoteSchema } from '../store/schema-name.js'
import { benchQuery } from './queries.js'
import type { Claimant, Claimed, QueueCount, Subject } from './subject.js'
import { ranges, type SubjectOptions, tenantsOf } from './tenantry-subject.js'

/** The frozen control: a claim and a delete of plain SQL, prepared, on the same kind of connection as ours. */
export class BareSubject implements Subject {
  readonly strategy = 'fifo'
  readonly #options: SubjectOptions
  /** Jobs enqueued so far. */
  #enqueued = 0

  constructor(options: SubjectOptions) {
    this.#options = options
  }

  async prepare(): Promise<void> {
    const { session, schema, scenario } = this.#options
    await session.run('bare_create', { schema })
    await session.run('without_autovacuum', { schema })
    for (const values of ranges(scenario.historyJobs)) await session.run('bare_finished', { schema, values })
  }

  async load(jobs: number): Promise<void> {
    const { session, schema, scenario } = this.#options
    if (scenario.fresh) {
      await session.run('bare_empty', { schema })
      this.#enqueued = 0
    }
    const missing = jobs - (await this.count()).waiting
    const tenants = tenantsOf(scenario, jobs)
    for (const [from, to] of ranges(missing)) {
      await session.run('bare_enqueue', { schema, values: [from + this.#enqueued, to + this.#enqueued, tenants] })
    }
    this.#enqueued += missing
    await this.#vacuum({ analyze: true })
  }

  connect(applicationName: string): Claimant {
    const { connectionString, schema, scenario } = this.#options
    const connection = new Connection({ client: { connectionString, application_name: applicationName } })
    return new BareClaimant(connection, { schema, batch: scenario.batch })
  }

  async count(): Promise<QueueCount> {
    const { session, schema } = this.#options
    const [row] = await session.run('bare_count', { schema })
    return { waiting: Number(row?.['waiting']), running: Number(row?.['running']) }
  }

  vacuum(): Promise<void> {
    return this.#vacuum({ analyze: false })
  }

  async #vacuum(options: { readonly analyze: boolean }): Promise<void> {
    const { session, schema } = this.#options
    await session.vacuum([`${quoteSchema(schema)}.job_queue`], options)
  }
}

class BareClaimant implements Claimant {
  readonly #connection: Connection
  readonly #claim: string
  readonly #complete: string
  /** The article's fence: a worker's name. */
  readonly #workerId = `bench:${systemRandom.uuid().slice(0, 8)}`

  constructor(connection: Connection, { schema, batch }: { readonly schema: string; readonly batch: number }) {
    this.#connection = connection
    this.#claim = benchQuery('bare_claim', { schema, batch })
    this.#complete = benchQuery('bare_complete', { schema })
  }

  async claim(): Promise<Claimed> {
    const rows = await this.#connection.query({ name: 'bare_claim', text: this.#claim, values: [this.#workerId] })
    // A worker reads what it has claimed, and so does ours.
    for (const row of rows) JSON.parse(column(row, 'payload'))
    return { jobIds: rows.map((row) => column(row, 'id')), fence: this.#workerId }
  }

  async settle({ jobIds, fence }: Claimed): Promise<ReadonlySet<string>> {
    const rows = await this.#connection.query({ name: 'bare_complete', text: this.#complete, values: [jobIds, fence] })
    return new Set(rows.map((row) => column(row, 'id')))
  }

  async flushStatistics(): Promise<void> {
    await this.#connection.query({ text: benchQuery('flush_statistics') })
  }

  async close(): Promise<void> {
    await this.#connection.stop()
  }
}
