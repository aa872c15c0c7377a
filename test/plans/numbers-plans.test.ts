import { expect, test } from 'vitest'
import { createSchema } from '../support/database.js'
import { minuteOf, numbersStore, windowParts } from '../support/numbers.js'
import { heaviest, mostRows, PlanWatcher, sequentialScans } from '../support/plans.js'

const TENANTS = 10_000
const DEEP = 100_000

/** Ten thousand tenants with a job each, and one with a backlog; the statistics were taken before they came. */
async function setUp() {
  const schema = await createSchema()
  await schema.query(`vacuum (analyze) ${schema.quoted}.job`)
  await schema.query(
    `insert into ${schema.quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'default', 'k', case when n <= $1 then 'tenant ' || n else 'deep' end, 'available', 0, 20, now(), now(), now(), '{}'
     from generate_series(1, $1 + $2::integer) as n`,
    [TENANTS, DEEP],
  )
  const store = numbersStore(schema)
  const minute = await minuteOf(schema)
  const counted = Object.fromEntries(
    Array.from({ length: TENANTS }, (_, n) => [`tenant ${n + 1}`, { waitsMs: [5, 500], runsMs: [7] }]),
  )
  for (const worker of ['one', 'two']) {
    for (const part of windowParts('default', minute, counted)) await store.record(worker, part)
  }
  return schema
}

test('the numbers of ten thousand tenants read each tenant and the jobs that are counted, not the backlog', async () => {
  const schema = await setUp()
  const watcher = await PlanWatcher.on(schema)
  const plans = await watcher.watch(`select * from ${schema.quoted}.tenants_v1('default', 20000)`)
  expect(sequentialScans(plans).filter((table) => table === 'job')).toEqual([])
  // Two workers with three buckets of each tenant are 60,000; every other node handles less.
  expect(mostRows(plans), heaviest(plans)).toBeLessThanOrEqual(60_000 + TENANTS)

  const [found] = (
    await watcher.client.query(
      `select count(*)::int as tenants, max(available)::int as deepest, sum(started)::int as started, count(*) filter (where capped)::int as capped
       from ${schema.quoted}.tenants_v1('default', 20000)`,
    )
  ).rows
  expect(found).toMatchObject({ tenants: TENANTS + 1, started: 4 * TENANTS })
  expect(found.deepest).toBeLessThanOrEqual(20_000)
})

test('a flush writes one row for up to a thousand tenants, however often it comes', async () => {
  const schema = await createSchema()
  const store = numbersStore(schema)
  const minute = await minuteOf(schema)
  const tenants = Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`tenant ${n}`, { waitsMs: [5] }]))
  for (let flush = 0; flush < 3; flush += 1) {
    for (const part of windowParts('default', minute, tenants)) await store.record('w', part)
  }
  const rows = await schema.query(
    `select part, cardinality(tenants) as tenants from ${schema.quoted}.worker_window order by part`,
  )
  expect(rows).toEqual([
    { part: 0, tenants: 1_000 },
    { part: 1, tenants: 1_000 },
    { part: 2, tenants: 500 },
  ])
})
