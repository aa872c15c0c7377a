import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { type TestQueue, useSharedDatabase } from '../support/claims.js'
import { heaviest, mostRows, PlanWatcher } from '../support/plans.js'

const database = useSharedDatabase()

/** Jobs of a kind that no worker knows. The case in the field has 200,000, in front of 10 that somebody knows. */
const UNKNOWN = 20_000

/** Rows that one node of a plan may handle: the known jobs and their lanes, several times over. */
const ROWS_MAX = 100

test.each(STRATEGIES)(
  '%s: masses of jobs of an unknown kind cost a claim nothing and are left as they are (B03)',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    await queue.enqueue(...Array.from({ length: 10 }, (_, n) => ({ kind: 'known', tenant: `t${n}` })))
    await insertUnknown(queue)
    const watcher = await PlanWatcher.on(database.schema)
    for (const kind of ['known', 'known', 'nothing', 'nothing', 'known']) {
      const plans = await watcher.watch(
        database.sql(
          `select * from :schema.claim_v1('${queue.name}', gen_random_uuid(), 'w', '{${kind}}', 2, 60000, false)`,
        ),
      )
      expect(mostRows(plans), heaviest(plans)).toBeLessThan(ROWS_MAX)
    }
    expect((await queue.claimAll(5, { kinds: ['known'] })).map(({ kind }) => kind)).toEqual(Array(4).fill('known'))

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
