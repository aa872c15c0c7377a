import { expect } from 'vitest'
import type { Session, SharedDatabase, TestQueue } from './claims.js'

type Settings = Readonly<Record<string, unknown>>

/** A queue whose limits a test sets as an operator does, by the public functions of the schema. */
export class LimitedQueue {
  readonly queue: TestQueue
  readonly #database: SharedDatabase

  constructor(database: SharedDatabase, queue = database.queue()) {
    this.#database = database
    this.queue = queue
  }

  get name(): string {
    return this.queue.name
  }

  async set(settings: Settings): Promise<void> {
    await this.#configure('configure_queue($1, $2)', [settings])
  }

  async setTenant(name: string, settings: Settings): Promise<void> {
    await this.#configure('configure_tenant($1, $2, $3)', [name, settings])
  }

  async setKind(name: string, settings: Settings): Promise<void> {
    await this.#configure('configure_kind($1, $2, $3)', [name, settings])
  }

  async setKey(name: string, settings: Settings): Promise<void> {
    await this.#configure('configure_key($1, $2, $3)', [name, settings])
  }

  async setGroup(name: string, settings: Settings): Promise<void> {
    await this.#configure('configure_group($1, $2, $3)', [name, settings])
  }

  async pause(scope: Settings = {}): Promise<void> {
    await this.#configure('pause($1, $2)', [scope])
  }

  async resume(scope: Settings = {}): Promise<void> {
    await this.#configure('resume($1, $2)', [scope])
  }

  /** How many run now, by the given column. */
  async running(by: 'tenant' | 'kind' | 'key' | 'queue' = 'queue'): Promise<Readonly<Record<string, number>>> {
    const rows = await this.#database.query<{ name: string; jobs: number }>(
      `select ${by} as name, count(*)::int as jobs from :schema.job
       where queue = $1 and state = 'running' and ${by} is not null group by ${by} order by ${by}`,
      [this.name],
    )
    return Object.fromEntries(rows.map(({ name, jobs }) => [name, jobs]))
  }

  /** How many wait or run. */
  left(): Promise<number> {
    return this.#database.value(`select count(*)::int from :schema.job where queue = $1`, [this.name])
  }

  /** Lets the leases of these claims run out and takes their jobs back, which are then due at once. */
  async reclaim(leaseIds: readonly string[]): Promise<void> {
    await this.#database.query(
      `update :schema.lease set expires_at = now() - interval '1 second' where queue = $1 and id = any ($2)`,
      [this.name, leaseIds],
    )
    await this.#database.store.reclaim()
    await this.makeDue()
  }

  /** What waits for a retry is due now, in its place. */
  async makeDue(): Promise<void> {
    await this.#database.query(
      `update :schema.job set run_at = now() where queue = $1 and state = 'scheduled' and claimed_at is not null`,
      [this.name],
    )
  }

  /** As if so much time had passed since everything that the queue remembers. */
  async age(seconds: number): Promise<void> {
    const past = `- $2 * interval '1 second'`
    await this.#database.query(`update :schema.bucket set full_at = full_at ${past} where queue = $1`, [
      this.name,
      seconds,
    ])
    await this.#database.query(`update :schema.key_timer set due_at = due_at ${past} where queue = $1`, [
      this.name,
      seconds,
    ])
    await this.#database.query(
      `update :schema.ring set parked_at = parked_at ${past}, parked_until = parked_until ${past} where queue = $1`,
      [this.name, seconds],
    )
    await this.#database.query(
      `update :schema.walk set walk_at = walk_at ${past}, rest_until = rest_until ${past} where queue = $1`,
      [this.name, seconds],
    )
  }

  async #configure(call: string, values: readonly unknown[]): Promise<void> {
    await this.#database.query(`select :schema.${call}`, [
      this.name,
      ...values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
    ])
  }
}

/** Limits of a queue that do not change while it is watched. */
export interface Limits {
  readonly queue?: number
  readonly tenants?: Readonly<Record<string, number>>
  readonly kinds?: Readonly<Record<string, number>>
  readonly keys?: Readonly<Record<string, number>>
}

/** Looks again and again at what runs, each time in one statement, and keeps what is more than a limit. */
export class LimitWatch implements AsyncDisposable {
  readonly breaches: string[] = []
  /** The most that ran at once. */
  most = 0
  readonly #watching: Promise<void>
  #samples = 0
  #isOver = false

  constructor(session: Pick<Session, 'run'>, queue: string, limits: Limits) {
    this.#watching = this.#watch(session, queue, limits)
  }

  /** Stops, and answers with the number of looks. */
  async stop(): Promise<number> {
    this.#isOver = true
    await this.#watching
    return this.#samples
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #watch(session: Pick<Session, 'run'>, queue: string, limits: Limits): Promise<void> {
    const given = [
      ...(limits.queue === undefined ? [] : [['queue', queue, limits.queue] as const]),
      ...Object.entries(limits.tenants ?? {}).map(([name, limit]) => ['tenant', name, limit] as const),
      ...Object.entries(limits.kinds ?? {}).map(([name, limit]) => ['kind', name, limit] as const),
      ...Object.entries(limits.keys ?? {}).map(([name, limit]) => ['key', name, limit] as const),
    ]
    while (!this.#isOver) {
      const rows = await session.run<{ scope: string; name: string; jobs: number; is_over: boolean }>(RUNNING, [
        queue,
        given.map(([scope]) => scope),
        given.map(([, name]) => name),
        given.map(([, , limit]) => limit),
      ])
      for (const { scope, name, jobs, is_over } of rows) {
        if (scope === 'queue') this.most = Math.max(this.most, jobs)
        if (is_over) this.breaches.push(`${jobs} jobs of ${scope} ${name} ran at once`)
      }
      this.#samples += 1
    }
  }
}

const RUNNING = `
  with running as (
    select queue, tenant, kind, key from :schema.job where queue = $1 and state = 'running'
  )
  select bound.scope, bound.name, count(*)::int as jobs, count(*) > bound.most as is_over
  from unnest($2::text[], $3::text[], $4::int[]) as bound (scope, name, most)
  join running on bound.name = case bound.scope
    when 'queue' then running.queue when 'tenant' then running.tenant when 'kind' then running.kind else running.key end
  group by bound.scope, bound.name, bound.most`

/** What must hold of the ring of a queue between any two claims, if all has been folded in. */
export async function expectRingSound(database: SharedDatabase, queue: string): Promise<void> {
  const nodes = await database.query(
    `select grp, kind, node.ready, lanes.ready as has_lane
     from (select * from :schema.group_ring where queue = $1) as node
     full join (
       select grp, kind, bool_or(ready) as ready from :schema.ring where queue = $1 and grp <> '' group by grp, kind
     ) as lanes using (grp, kind)
     where coalesce(node.ready, false) <> coalesce(lanes.ready, false)`,
    [queue],
  )
  expect(nodes, 'nodes that are ready without a ready lane, or the other way round (G1)').toEqual([])
  const parked = await database.query(
    'select tenant, kind from :schema.ring where queue = $1 and ready and parked_until is not null',
    [queue],
  )
  expect(parked, 'lanes that are ready and parked').toEqual([])
}
