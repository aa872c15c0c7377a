import { describe, expect, test } from 'vitest'
import { createSchema, type TestSchema } from '../support/database.js'
import { heaviest, mostRows, PlanWatcher, type StatementPlan, sequentialScans } from '../support/plans.js'

/** Rows that one node of a claim's plans may handle, far below every quantity that must not matter. */
const ROWS_MAX = 200
const BACKLOG = 10_000

const TABLES = [
  'job',
  'ring',
  'group_ring',
  'signal',
  'notice',
  'lease',
  'walk',
  'waiter',
  'queue',
  'tenant',
  'tenant_group',
  'kind',
  'key',
  'key_timer',
  'bucket',
]

const SITUATIONS = [
  { statistics: 'never analysed', analyse: 'never' },
  { statistics: 'analysed while empty', analyse: 'empty' },
  { statistics: 'freshly analysed', analyse: 'full' },
] as const

/** Settings of every sort: what each claim then has to look at. */
const SETTINGS = [
  `configure_queue('q', '{"concurrency": 100000, "tenant_concurrency": 50, "rate": {"limit": 100000}, "key_rate": {"limit": 1000}}')`,
  `configure_queue('q', '{"charge": "time"}')`,
  `configure_kind('q', 'known', '{"concurrency": 5000, "rate": {"limit": 10000}}')`,
  `configure_group('q', 'g', '{"weight": 2}')`,
]

async function analyse(schema: TestSchema): Promise<void> {
  for (const table of TABLES) await schema.query(`analyze ${schema.quoted}.${table}`)
}

async function fill(schema: TestSchema, moment: 'never' | 'empty' | 'full'): Promise<void> {
  const { quoted } = schema
  for (const table of TABLES) await schema.query(`alter table ${quoted}.${table} set (autovacuum_enabled = false)`)
  if (moment === 'empty') await analyse(schema)
  for (const call of SETTINGS) await schema.query(`select ${quoted}.${call}`)
  // Tenants with settings of their own, of whom most have nothing to do.
  await schema.query(
    `insert into ${quoted}.tenant (queue, tenant, weight, grp, concurrency, rate_per_second, burst)
     select 'q', 't' || n, 2, case when n % 2 = 0 then 'g' end, case when n % 3 = 0 then 40 end,
            case when n % 5 = 0 then 1000 end, case when n % 5 = 0 then 1000 end
     from generate_series(1, 5000) as n`,
  )
  await schema.query(
    `insert into ${quoted}.bucket (queue, scope, name, full_at)
     select 'q', scope, 't' || n, now() from generate_series(1, 5000) as n, unnest(array['tenant', 'key', 'kind']) as scope`,
  )
  await schema.query(
    `insert into ${quoted}.key (queue, key, concurrency) select 'q', 'key' || n, 2 from generate_series(1, 5000) as n`,
  )
  await insertJobs(schema, { tenant: `'noisy'`, state: 'available', count: BACKLOG })
  await insertJobs(schema, { tenant: `'t' || n`, state: 'available', count: 300 })
  await insertJobs(schema, { tenant: `'t' || n % 100`, state: 'blocked', count: BACKLOG, key: `'one'` })
  await insertJobs(schema, { tenant: `'t' || n % 100`, state: 'blocked', count: 3_000, key: `'key' || n` })
  if (moment === 'full') await analyse(schema)
}

interface Jobs {
  readonly tenant: string
  readonly state: 'available' | 'blocked'
  readonly count: number
  readonly key?: string
}

async function insertJobs(schema: TestSchema, { tenant, state, count, key = 'null' }: Jobs): Promise<void> {
  await schema.query(
    `insert into ${schema.quoted}.job (queue, kind, tenant, key, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'q', 'known', ${tenant}, ${key}, '${state}', 0, 5, now() - interval '1 hour', now() - interval '1 hour', now(), '1'
     from generate_series(1, $1) as n`,
    [count],
  )
}

function claimCall(schema: TestSchema, count: number, lease = 'gen_random_uuid()', kinds = 'known'): string {
  return `select * from ${schema.quoted}.claim_v1('q', ${lease}, 'w', '{${kinds}}', ${count}, 60000, true)`
}

/** All rows that all nodes handled: the work of a call. */
function work(plans: readonly StatementPlan[]): number {
  return plans
    .flatMap(({ nodes }) => nodes)
    .reduce(
      (sum, node) => sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    )
}

function blocks(plans: readonly StatementPlan[]): number {
  // The first plan to arrive is that of the innermost statement; the largest holds the others.
  return Math.max(
    ...plans.map(({ nodes }) => (nodes[0]?.['Shared Hit Blocks'] ?? 0) + (nodes[0]?.['Shared Read Blocks'] ?? 0)),
  )
}

describe.each(SITUATIONS)('$statistics', ({ analyse: moment }) => {
  test('a claim with all sorts of limits reads no table from end to end and few rows (B97, B98)', async () => {
    const schema = await createSchema()
    await fill(schema, moment)
    const watcher = await PlanWatcher.on(schema)
    // The first claims make the ring and walk along the keys.
    for (let n = 0; n < 3; n += 1) await watcher.watch(claimCall(schema, 20))
    for (const count of [1, 20, 20]) {
      const plans = await watcher.watch(claimCall(schema, count))
      expect(sequentialScans(plans)).toEqual([])
      expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
    }
  })

  test('settling, giving back and reclaiming tell of it at the same price', async () => {
    const schema = await createSchema()
    await fill(schema, moment)
    const watcher = await PlanWatcher.on(schema)
    for (const [nth, call] of SETTLE.entries()) {
      const lease = `00000000-0000-4000-8000-00000000000${nth}`
      await watcher.watch(claimCall(schema, 20, `'${lease}'`))
      const [given] = await schema.query<{ ids: string[]; leases: string[] }>(
        `select array_agg(id) as ids, array_agg(lease_id) as leases from ${schema.quoted}.job where lease_id = $1`,
        [lease],
      )
      if (call === RECLAIM)
        await schema.query(`update ${schema.quoted}.lease set expires_at = now() - interval '1 s' where id = $1`, [
          lease,
        ])
      const values = call === RECLAIM ? [] : [given?.ids, given?.leases]
      const plans = await watcher.watch(call.replace('$schema', schema.quoted), values)
      expect(
        sequentialScans(plans).filter((table) => table !== ''),
        heaviest(plans),
      ).toEqual([])
      expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
    }
  })
})

const RECLAIM = 'select * from $schema.reclaim_v1(100)'
const SETTLE = [
  `select $schema.complete_v1('q', $1, $2, '{}')`,
  `select $schema.requeue_v1('q', $1, $2, array_fill('release'::text, array[20]), array_fill(0::float8, array[20]), array_fill(null::jsonb, array[20]), '{}')`,
  `select $schema.finalize_v1('q', $1, $2, array_fill('cancelled'::text, array[20]), array_fill(null::jsonb, array[20]), '{}')`,
  RECLAIM,
]

/** Tenants that are at their limit, out of tokens, or paused: each with a backlog. */
async function park(schema: TestSchema, tenants: number): Promise<void> {
  const { quoted } = schema
  // An autovacuum between two claims has every statement planned anew, and that planning reads more blocks than the claims do.
  for (const table of ['job', 'lease', 'ring', 'signal', 'tenant', 'walk'])
    await schema.query(`alter table ${quoted}.${table} set (autovacuum_enabled = false)`)
  await schema.query(`select ${quoted}.configure_queue('q', '{"tenant_concurrency": 5}')`)
  // For long: what the change itself costs, another test looks at.
  await schema.query(`delete from ${quoted}.notice`)
  await schema.query(
    `insert into ${quoted}.tenant (queue, tenant, paused_at) select 'q', 'p' || n, now() from generate_series(1, $1) as n`,
    [tenants],
  )
  await insertJobs(schema, { tenant: `'t' || n % 40`, state: 'available', count: 4_000 })
  await schema.query(
    `insert into ${quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'q', 'known', 'p' || n, 'available', 0, 5, now(), now() - interval '1 day', now(), '1'
     from generate_series(1, $1) as n, generate_series(1, 2)`,
    [tenants],
  )
  await schema.query(
    `insert into ${quoted}.ring (queue, tenant, kind, pass, ready, parked_at, parked_until, head_at, head_id)
     select 'q', 'p' || n, 'known', n % 7, false, now(), case when n % 2 = 0 then 'infinity' else now() + interval '1 hour' end,
            '-infinity', 0
     from generate_series(1, $1) as n`,
    [tenants],
  )
  await schema.query(
    `insert into ${quoted}.walk (queue, kind, tenant, walk_at) values ('q', 'known', '', now() + interval '1 hour'), ('q', '', '', now() + interval '1 hour')`,
  )
  await schema.query(
    `insert into ${quoted}.signal (queue, kind, tenant, order_at)
     select 'q', 'known', 't' || n, now() - interval '1 hour' from generate_series(0, 39) as n`,
  )
}

test('parked tenants cost a claim nothing, be there none, a hundred or ten thousand (B08, B100)', async () => {
  const measured: { readonly rows: number; readonly blocks: number }[] = []
  for (const tenants of [0, 100, 10_000]) {
    const schema = await createSchema()
    await park(schema, tenants)
    const watcher = await PlanWatcher.on(schema)
    await watcher.watch(claimCall(schema, 20))
    let [rows, pages] = [0, 0]
    for (const count of [1, 20, 8]) {
      const plans = await watcher.watch(claimCall(schema, count))
      rows += work(plans)
      pages += blocks(plans)
      expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
    }
    measured.push({ rows, blocks: pages })
  }
  const [none, few, many] = measured
  expect(few?.rows, JSON.stringify(measured)).toBeLessThan(1.3 * (none?.rows ?? 0))
  expect(many?.rows, JSON.stringify(measured)).toBeLessThan(1.3 * (none?.rows ?? 0))
  expect(many?.blocks, JSON.stringify(measured)).toBeLessThan(1.5 * (none?.blocks ?? 0))
})

test('an unfilled claim beside ten thousand parked tenants does not walk round them each time (B101)', async () => {
  const schema = await createSchema()
  await park(schema, 10_000)
  await schema.query(`delete from ${schema.quoted}.job where tenant like 't%'`)
  const watcher = await PlanWatcher.on(schema)
  await watcher.watch(claimCall(schema, 20))
  const plans = await watcher.watch(claimCall(schema, 20))
  expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
})

test('tenants that are found again after a crash, and are paused, are parked by the hundred and not one by one', async () => {
  const schema = await createSchema()
  await park(schema, 3_000)
  for (const table of ['ring', 'walk', 'signal']) await schema.query(`delete from ${schema.quoted}.${table}`)
  const watcher = await PlanWatcher.on(schema)
  const plans = await watcher.watch(claimCall(schema, 1))
  expect(plans.length, 'statements').toBeLessThan(400)
  const started = await schema.query(`select tenant from ${schema.quoted}.job where state = 'running'`)
  expect(started).toMatchObject([{ tenant: expect.stringMatching(/^t/) }])
})

test('a change for all tenants at once costs no claim more than a look at some of them, and acts for all', async () => {
  const schema = await createSchema()
  const { quoted } = schema
  await park(schema, 3_000)
  await schema.query(`update ${quoted}.tenant set paused_at = null, concurrency = 0`)
  await schema.query(`delete from ${quoted}.job where tenant like 't%'`)
  const watcher = await PlanWatcher.on(schema)
  await watcher.watch(claimCall(schema, 1))
  // Nine in ten stay at their limit.
  await schema.query(`update ${quoted}.tenant set concurrency = null where tenant like 'p%7'`)
  await schema.query(`select ${quoted}.configure_queue('q', '{"tenant_concurrency": 6}')`)
  // Marks the lanes.
  await watcher.watch(claimCall(schema, 1))
  const plans = await watcher.watch(claimCall(schema, 1))
  expect(work(plans), heaviest(plans)).toBeLessThan(50_000)
  let started = 0
  for (let n = 0; started < 600 && n < 200; n += 1) {
    const [claim] = await schema.query<{ claimed: number }>(claimCall(schema, 20))
    started += claim?.claimed ?? 0
  }
  expect(started).toBeGreaterThanOrEqual(598)
})

test('ten thousand jobs of one key, and as many keys, cost a claim a look at the first', async () => {
  const schema = await createSchema()
  await schema.query(`select ${schema.quoted}.configure_queue('q', '{"key_concurrency": 2}')`)
  await insertJobs(schema, { tenant: `'acme'`, state: 'blocked', count: BACKLOG, key: `'one'` })
  await insertJobs(schema, { tenant: `'t' || n % 50`, state: 'blocked', count: BACKLOG, key: `'key' || n` })
  await insertJobs(schema, { tenant: `'t' || n % 50`, state: 'available', count: 1_000 })
  const watcher = await PlanWatcher.on(schema)
  await watcher.watch(claimCall(schema, 20))
  for (const count of [1, 20, 20]) {
    const plans = await watcher.watch(claimCall(schema, count))
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(2 * ROWS_MAX)
  }
})
