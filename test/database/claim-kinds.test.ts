import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/store/store.js'
import { type TestQueue, useSharedDatabase } from '../support/claims.js'

const database = useSharedDatabase()

/** Jobs of a kind that no worker knows. The case in the field has 200,000, in front of 10 that somebody knows. */
const UNKNOWN = 20_000

/** Pages of 8 KiB: an index is a level deeper with more rows in it, and no more than that. The unknown jobs fill a thousand. */
const MORE_PAGES = 60

test.each(STRATEGIES)(
  '%s: masses of jobs of an unknown kind cost a claim nothing and are left as they are (B03)',
  async (strategy) => {
    const queue = database.queue()
    await database.store.configureQueue(queue.name, { strategy })
    await queue.enqueue(...Array.from({ length: 10 }, (_, n) => ({ kind: 'known', tenant: `t${n}` })))
    await queue.claim(1, { kinds: ['known'] })
    const before = await pagesOfClaim(queue, 5, ['known'])
    const beforeEmpty = await pagesOfClaim(queue, 5, ['nothing'])
    await insertUnknown(queue)
    expect(await pagesOfClaim(queue, 5, ['known'])).toBeLessThan(before + MORE_PAGES)
    expect(await pagesOfClaim(queue, 5, ['nothing'])).toBeLessThan(beforeEmpty + MORE_PAGES)
    expect((await queue.claimAll(5, { kinds: ['known'] })).map(({ kind }) => kind)).toEqual(Array(9).fill('known'))

    const untouched = await database.value(
      `select count(*)::int from :schema.job where queue = $1 and kind = 'unknown' and lease_id is null and attempt in (0, 1)`,
      [queue.name],
    )
    expect(untouched).toBe(3 * UNKNOWN)
    const claim = await queue.claim(7, { kinds: ['unknown'] })
    expect(claim.jobs).toHaveLength(7)
  },
)

/** Available, scheduled, and waiting for another attempt; all due long before anything else. */
async function insertUnknown(queue: TestQueue): Promise<void> {
  for (const [state, attempt, due] of [
    ['available', 0, '-1 day'],
    ['scheduled', 0, '-1 day'],
    ['scheduled', 1, '1 hour'],
  ]) {
    await database.query(
      `insert into :schema.job (queue, kind, tenant, state, priority, attempt, max_attempts, run_at, order_at, created_at, payload)
       select $1, 'unknown', 't' || n % 50, $2::text::${database.schema.quoted}.job_state, 0, $3, 5, now() + $4::interval,
              now() + $4::interval, now(), '1' from generate_series(1, $5) as n`,
      [queue.name, state, attempt, due, UNKNOWN],
    )
  }
}

/** Buffers, which unlike time do not depend on the machine. */
async function pagesOfClaim(queue: TestQueue, count: number, kinds: readonly string[]): Promise<number> {
  const client = await database.schema.connect()
  const text = `explain (analyze, buffers, format json)
    select * from :schema.claim_v1('${queue.name}', gen_random_uuid(), 'w', '{${kinds}}', ${count}, 60000, false)`
  let pages = 0
  // Catalogue pages are read while the session plans; the second claim of a session shows what the statement needs.
  for (let round = 0; round < 2; round += 1) {
    await client.query('begin')
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(database.sql(text))
    await client.query('rollback')
    const plan = rows[0]?.['QUERY PLAN'][0].Plan
    pages = (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)
  }
  return pages
}

test('a worker that knows some kinds claims those of any tenant, and leaves the rest to a worker that knows them', async () => {
  const queue = database.queue()
  const kinds = ['a', 'b', 'c']
  const ids = await queue.enqueue(
    ...Array.from({ length: 30 }, (_, n) => ({ kind: kinds[n % 3] as string, tenant: `t${n % 4}` })),
  )
  const some = await queue.claimAll(4, { kinds: ['a', 'b'] })
  expect(new Set(some.map(({ kind }) => kind))).toEqual(new Set(['a', 'b']))
  const rest = await queue.claimAll(4, { kinds: ['c', 'unheard-of'] })
  expect([...some, ...rest].map(({ id }) => id).sort()).toEqual(ids.sort())
  expect(some).toHaveLength(20)
})

test('names of kinds and tenants that run into each other are kept apart', async () => {
  const queue = database.queue()
  const lanes = [
    ['a', 'bc'],
    ['ab', 'c'],
    ['1:a', 'b'],
    ['1', ':ab'],
    ['a:', '1:b'],
    ['a', ':1:b'],
  ] as const
  await queue.enqueue(
    ...lanes.flatMap(([kind, tenant]) => [
      { kind, tenant },
      { kind, tenant },
    ]),
  )
  const kinds = [...new Set(lanes.map(([kind]) => kind))]
  const jobs = await queue.claimAll(5, { kinds })
  expect(jobs.map(({ kind, tenant }) => `${kind} of ${tenant}`).sort()).toEqual(
    lanes.flatMap(([kind, tenant]) => [`${kind} of ${tenant}`, `${kind} of ${tenant}`]).sort(),
  )
})
