import { expect, test } from 'vitest'
import type { Strategy } from '../../src/settings/settings.js'
import { createSchema, type TestSchema } from '../support/database.js'
import { heaviest, mostRows, PlanWatcher, sequentialScans } from '../support/plans.js'

/** The noisy tenant's backlog. The cases in the field have a million; what reads all of it shows with this many too. */
const BACKLOG = 10_000

/** Tenants with one job each, and lanes that are idle. */
const TENANTS = 300

/**
 * Rows that one node of a claim's plans may handle: what it takes, what it looks at beside, some steps of discovery.
 * Far below every quantity that must not matter.
 */
const ROWS_MAX = 150

interface Situation {
  readonly statistics: string
  /** Before, between and after the insertion of the backlog and that of the other tenants' jobs. */
  readonly analyse: readonly ('empty' | 'one tenant' | 'full')[]
}

const SITUATIONS: readonly Situation[] = [
  { statistics: 'never analysed', analyse: [] },
  { statistics: 'analysed while empty', analyse: ['empty'] },
  { statistics: 'analysed while there was one tenant', analyse: ['one tenant'] },
  { statistics: 'freshly analysed', analyse: ['full'] },
]

async function fill(schema: TestSchema, { analyse }: Situation): Promise<void> {
  const statistics = async (moment: Situation['analyse'][number]) => {
    if (!analyse.includes(moment)) return
    for (const table of TABLES) await schema.query(`analyze ${schema.quoted}.${table}`)
  }
  for (const table of TABLES)
    await schema.query(`alter table ${schema.quoted}.${table} set (autovacuum_enabled = false)`)
  await statistics('empty')
  await insertJobs(schema, { tenant: `'noisy'`, state: 'available', kind: 'known', count: BACKLOG })
  await statistics('one tenant')
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'known', count: TENANTS })
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'also', count: TENANTS })
  await insertJobs(schema, { tenant: `'t' || n % 50`, state: 'available', kind: 'unknown', count: BACKLOG })
  await insertJobs(schema, { tenant: `'t' || n % 50`, state: 'scheduled', kind: 'known', count: BACKLOG })
  await statistics('full')
}

const TABLES = ['job', 'ring', 'signal', 'lease', 'walk', 'waiter', 'queue', 'tenant']

interface Jobs {
  readonly tenant: string
  readonly state: 'available' | 'scheduled'
  readonly kind: string
  readonly count: number
}

async function insertJobs(schema: TestSchema, { tenant, state, kind, count }: Jobs): Promise<void> {
  const due = state === 'available' ? `now() - interval '1 day'` : `now() + interval '1 day'`
  await schema.query(
    `insert into ${schema.quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'q', $1, ${tenant}, '${state}', 0, 5, ${due}, ${due}, now(), '1' from generate_series(1, $2) as n`,
    [kind, count],
  )
}

function claimCall(schema: TestSchema, count: number, kinds: readonly string[]): string {
  return `select * from ${schema.quoted}.claim_v1('q', gen_random_uuid(), 'w', '{${kinds}}', ${count}, 60000, true)`
}

const CASES = (['fair', 'fifo'] as const).flatMap((strategy) =>
  SITUATIONS.map((situation) => ({ strategy, ...situation })),
)

test.each(CASES)(
  '$strategy, $statistics: a claim reads no table from end to end and few rows (B97, B98)',
  async (of) => {
    const schema = await createSchema()
    await configure(schema, of.strategy)
    await fill(schema, of)
    const watcher = await PlanWatcher.on(schema)
    // The first claim makes the ring and reads one entry of the index for each tenant.
    await watcher.watch(claimCall(schema, 1, ['known', 'also']))
    for (const kinds of [['known'], ['known', 'also']]) {
      for (const count of [1, 20, 20]) {
        const plans = await watcher.watch(claimCall(schema, count, kinds))
        expect(sequentialScans(plans)).toEqual([])
        expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
      }
    }
  },
)

async function configure(schema: TestSchema, strategy: Strategy): Promise<void> {
  await schema.query(`insert into ${schema.quoted}.queue (name, strategy) values ('q', $1)`, [strategy])
}

test('the twentieth claim of a session has the plans of the first, though the tenants have changed (B97)', async () => {
  const schema = await createSchema()
  await insertJobs(schema, { tenant: `'noisy'`, state: 'available', kind: 'known', count: BACKLOG })
  const watcher = await PlanWatcher.on(schema)
  for (let n = 0; n < 20; n++) await watcher.watch(claimCall(schema, 5, ['known']))
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'known', count: 10 * TENANTS })
  for (let n = 0; n < 20; n++) {
    const plans = await watcher.watch(claimCall(schema, 5, ['known']))
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
  }
})

test('tenants that are idle cost a claim nothing, however many there are (B100)', async () => {
  const schema = await createSchema()
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'known', count: 100 })
  const watcher = await PlanWatcher.on(schema)
  await watcher.watch(claimCall(schema, 1, ['known']))
  await schema.query(
    `insert into ${schema.quoted}.ring (queue, tenant, kind, pass, ready, head_at, head_id)
     select 'q', 'idle' || n, kind, n % 1000, false, now(), 0 from generate_series(1, 20000) as n, unnest(array['known', 'also']) as kind`,
  )
  await insertJobs(schema, { tenant: `'idle' || n * 100`, state: 'available', kind: 'known', count: 20 })
  for (const count of [1, 20]) {
    const plans = await watcher.watch(claimCall(schema, count, ['known']))
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
  }
})

test('a large claim from many tenants with a job each looks at a bounded number of turns, weights or not', async () => {
  const schema = await createSchema()
  await schema.query(`insert into ${schema.quoted}.tenant (queue, tenant, weight) values ('q', 't1', 2)`)
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'known', count: 3_000 })
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', kind: 'also', count: 3_000 })
  const watcher = await PlanWatcher.on(schema)
  await watcher.watch(claimCall(schema, 1, ['known', 'also']))
  for (const kinds of [['known'], ['known', 'also']]) {
    const plans = await watcher.watch(claimCall(schema, 500, kinds))
    // 64 turns of 64 tenants; without a bound it would be 500 of 500.
    expect(mostRows(plans), heaviest(plans)).toBeLessThanOrEqual(64 * 64)
  }
})

test('an empty queue with idle tenants is found empty at the same price (B101)', async () => {
  const schema = await createSchema()
  // The first claim for a kind begins its ring.
  await schema.query(claimCall(schema, 1, ['known', 'also']))
  await schema.query(
    `insert into ${schema.quoted}.ring (queue, tenant, kind, pass, ready, head_at, head_id)
     select 'q', 'idle' || n, 'known', n % 1000, false, now(), 0 from generate_series(1, 20000) as n`,
  )
  const watcher = await PlanWatcher.on(schema)
  for (let n = 0; n < 3; n++) {
    const plans = await watcher.watch(claimCall(schema, 50, ['known', 'also']))
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
  }
})

test('jobs of the future cost a claim nothing, also when some are due (B98)', async () => {
  const schema = await createSchema()
  await insertJobs(schema, { tenant: `'t' || n % 50`, state: 'scheduled', kind: 'known', count: 2 * BACKLOG })
  await schema.query(`update ${schema.quoted}.job set run_at = now() - interval '1 minute' where id % 1000 = 0`)
  const watcher = await PlanWatcher.on(schema)
  for (const count of [5, 5, 50]) {
    const plans = await watcher.watch(claimCall(schema, count, ['known']))
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
  }
})
