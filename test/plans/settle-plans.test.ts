import { expect, test } from 'vitest'
import { createSchema, type TestSchema } from '../support/database.js'
import { heaviest, mostRows, PlanWatcher, sequentialScans } from '../support/plans.js'

/** Jobs that run, each 10 of them under one lease, and as many that wait. */
const RUNNING = 10_000
const PER_LEASE = 10

const BATCH = 50

const ROWS_MAX = 3 * BATCH

async function fill(schema: TestSchema, analyse: 'never' | 'while empty' | 'when full'): Promise<void> {
  const { quoted } = schema
  const tables = ['job', 'lease', 'ring', 'signal', 'queue', 'waiter', 'job_history']
  for (const table of tables.slice(0, -1))
    await schema.query(`alter table ${quoted}.${table} set (autovacuum_enabled = false)`)
  const statistics = async () => {
    for (const table of tables) await schema.query(`analyze ${quoted}.${table}`)
  }
  if (analyse === 'while empty') await statistics()
  await schema.query(
    `insert into ${quoted}.lease (id, queue, worker_id, claimed_at, expires_at)
     select gen_random_uuid(), 'q', 'w' || n % 7, now(), now() + interval '1 hour' from generate_series(1, $1) as n`,
    [RUNNING / PER_LEASE],
  )
  await schema.query(
    `insert into ${quoted}.job (queue, kind, tenant, state, priority, attempt, max_attempts, run_at, order_at, created_at, claimed_at, lease_id, payload)
     select 'q', 'known', 't' || n % 100, 'running', 0, 1, 5, now(), now(), now(), now(), lease.id, '1'
     from ${quoted}.lease, generate_series(1, $1) as n`,
    [PER_LEASE],
  )
  await schema.query(
    `insert into ${quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'q', 'known', 't' || n % 100, 'available', 0, 5, now(), now(), now(), '1' from generate_series(1, $1) as n`,
    [RUNNING],
  )
  if (analyse === 'when full') await statistics()
}

/** Every call by which jobs and leases change after the claim. `$jobs` and `$leases` are what it is about. */
const CALLS: Readonly<Record<string, string>> = {
  complete: `:schema.complete_v1('q', :ids, :leases, :finished)`,
  retry: `:schema.requeue_v1('q', :ids, :leases, array_fill('retry'::text, array[:n]), array_fill(5000::float8, array[:n]), array_fill('{}'::jsonb, array[:n]), :finished)`,
  release: `:schema.requeue_v1('q', :ids, :leases, array_fill('release'::text, array[:n]), array_fill(0::float8, array[:n]), array_fill(null::jsonb, array[:n]), :finished)`,
  discard: `:schema.finalize_v1('q', :ids, :leases, array_fill('discarded'::text, array[:n]), array_fill('{}'::jsonb, array[:n]), :finished)`,
  extend: `:schema.extend_v1(:finished, 30000)`,
  read: `:schema.claimed_v1((:finished)[1])`,
}

const CASES = (['never', 'while empty', 'when full'] as const).flatMap((analyse) =>
  (['keep', 'none'] as const).map((history) => ({ analyse, history })),
)

test.each(CASES)(
  'analysed $analyse, history $history: settling and extending read what they change, and no more (B97)',
  async (of) => {
    const schema = await createSchema()
    await schema.query(`insert into ${schema.quoted}.queue (name, history) values ('q', $1)`, [of.history])
    await fill(schema, of.analyse)
    const watcher = await PlanWatcher.on(schema)
    for (const [name, call] of Object.entries(CALLS)) {
      // The second time the session's plans are those that will be used from then on.
      for (let round = 0; round < 2; round++) {
        const plans = await watcher.watch(await prepare(schema, call))
        expect(sequentialScans(plans), name).toEqual([])
        expect(mostRows(plans), `${name}: ${heaviest(plans)}`).toBeLessThanOrEqual(ROWS_MAX)
      }
    }
  },
)

/** A call with the ids of running jobs as literals, as many as a batch has. */
async function prepare(schema: TestSchema, call: string): Promise<string> {
  const [row] = await schema.query<{ ids: string; leases: string; finished: string }>(
    `select array_agg(id)::text as ids, array_agg(lease_id)::text as leases, array_agg(distinct lease_id)::text as finished
     from (select id, lease_id from ${schema.quoted}.job where state = 'running' order by lease_id limit $1) as head`,
    [BATCH],
  )
  const text = call
    .replaceAll(':schema', schema.quoted)
    .replaceAll(':ids', `'${row?.ids}'::bigint[]`)
    .replaceAll(':leases', `'${row?.leases}'::uuid[]`)
    .replaceAll(':finished', `'${row?.finished}'::uuid[]`)
    .replaceAll(':n', `${BATCH}`)
  return `select ${text}`
}

test.each(['never', 'while empty', 'when full'] as const)(
  'analysed %s: reclaiming reads the leases that have run out and their jobs, and no others (B97)',
  async (analyse) => {
    const schema = await createSchema()
    await fill(schema, analyse)
    const watcher = await PlanWatcher.on(schema)
    await schema.query(
      `update ${schema.quoted}.lease set expires_at = now() - interval '1 minute'
       where id in (select id from ${schema.quoted}.lease order by id limit 5)`,
    )
    for (let round = 0; round < 2; round++) {
      const plans = await watcher.watch(`select * from ${schema.quoted}.reclaim_v1(100)`)
      expect(sequentialScans(plans)).toEqual([])
      expect(mostRows(plans), heaviest(plans)).toBeLessThanOrEqual(ROWS_MAX)
    }
  },
)

test('an enqueue reads nothing that grows: not the jobs, not the ring, not the leases', async () => {
  const schema = await createSchema()
  await fill(schema, 'never')
  await schema.query(
    `insert into ${schema.quoted}.ring (queue, tenant, kind, pass, ready, head_at, head_id)
     select 'q', 't' || n, 'known', n, n % 2 = 0, now(), 0 from generate_series(1, 20000) as n`,
  )
  const watcher = await PlanWatcher.on(schema)
  for (let round = 0; round < 2; round++) {
    const plans = await watcher.watch(
      `select ${schema.quoted}.enqueue('known', '1', 't' || n, '{"queue": "q"}') from generate_series(1, 3) as n`,
    )
    expect(sequentialScans(plans)).toEqual([])
    expect(mostRows(plans), heaviest(plans)).toBeLessThan(10)
  }
})
