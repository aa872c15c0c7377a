import { randomUUID } from 'node:crypto'
import type { Rate } from '../../src/scheduler/bucket.js'
import { KIND, type Place, type Started, type Step, type Subject } from './script.js'

export type Query = <Row>(text: string, values: readonly unknown[]) => Promise<Row[]>

/** One queue of a database. `:schema` stands for the schema in what is queried. */
export class DatabaseSubject implements Subject {
  readonly #query: Query
  readonly #queue: string
  readonly #ids: string[] = []
  readonly #numbers = new Map<string, number>()
  readonly #leases = new Map<number, string>()

  constructor(query: Query, queue: string) {
    this.#query = query
    this.#queue = queue
  }

  async enqueue({ tenant, jobs, kind = KIND, key, priority = 0 }: Extract<Step, { do: 'enqueue' }>): Promise<void> {
    const options = { queue: this.#queue, priority, ...(key !== undefined && { key }) }
    // One statement, so that all have the same time.
    const rows = await this.#query<{ id: string }>(
      `select :schema.enqueue($1, '{}'::jsonb, $2, $3::jsonb) as id from generate_series(1, $4)`,
      [kind, tenant, JSON.stringify(options), jobs],
    )
    for (const { id } of rows) this.#numbers.set(id, this.#ids.push(id) - 1)
  }

  async claim(count: number, kinds: readonly string[]): Promise<readonly Started[]> {
    const lease = randomUUID()
    await this.#query('select from :schema.claim_v1($1, $2, $3, $4, $5, 60000, false)', [
      this.#queue,
      lease,
      'conformance',
      kinds,
      count,
    ])
    const rows = await this.#query<{ id: string; tenant: string; kind: string }>(
      'select id, tenant, kind from :schema.claimed_v1($1)',
      [lease],
    )
    const started = rows.map(({ id, tenant, kind }) => ({ job: this.#numbers.get(id) ?? -1, tenant, kind }))
    for (const { job } of started) this.#leases.set(job, lease)
    return started
  }

  async settle(jobs: readonly number[], as: 'complete' | 'release'): Promise<void> {
    const ids = jobs.map((job) => this.#ids[job])
    const leases = jobs.map((job) => this.#leases.get(job))
    if (as === 'complete') {
      await this.#query('select :schema.complete_v1($1, $2, $3, $4)', [this.#queue, ids, leases, []])
      return
    }
    await this.#query('select :schema.requeue_v1($1, $2, $3, $4, $5, $6, $7)', [
      this.#queue,
      ids,
      leases,
      jobs.map(() => 'release'),
      jobs.map(() => 0),
      jobs.map(() => null),
      [],
    ])
  }

  async configure(step: Parameters<Subject['configure']>[0]): Promise<void> {
    if (!('settings' in step)) {
      const { do: what, ...scope } = step
      await this.#query(`select :schema.${what}($1, $2::jsonb)`, [this.#queue, JSON.stringify(scope)])
    } else if (step.do === 'queue') {
      await this.#query('select :schema.configure_queue($1, $2::jsonb)', [this.#queue, settingsOf(step.settings)])
    } else {
      const values = [this.#queue, step.name, settingsOf(step.settings)]
      await this.#query(`select :schema.configure_${step.do}($1, $2, $3::jsonb)`, values)
    }
  }

  async places(): Promise<readonly Place[]> {
    return this.#query<Place>(
      `select 'lane ' || tenant || '/' || kind as name, pass,
              case when ready then 'ready' when parked_until is not null then 'parked' else 'idle' end as standing
       from :schema.ring where queue = $1
       union all
       select 'group ' || grp || '/' || kind, pass, case when ready then 'ready' else 'idle' end
       from :schema.group_ring where queue = $1`,
      [this.#queue],
    )
  }
}

/** The names of SQL, and rates as they are given there. */
function settingsOf(settings: object): string {
  const entries = Object.entries(settings).map(([name, value]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    name.toLowerCase().endsWith('rate') && value !== null ? rateOf(value as Rate) : value,
  ])
  return JSON.stringify(Object.fromEntries(entries))
}

function rateOf({ perSecond, burst }: Rate) {
  return { limit: perSecond, per_ms: 1_000, burst }
}
