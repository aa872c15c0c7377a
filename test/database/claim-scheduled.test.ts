import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

/** As if so much time had passed: only the database's clock counts, and it cannot be turned. */
async function advance(queue: string, interval: string): Promise<void> {
  await database.query(
    `update :schema.job set run_at = run_at - $2::interval, order_at = order_at - $2::interval where queue = $1`,
    [queue, interval],
  )
}

test.each(STRATEGIES)(
  '%s: a scheduled job is not claimed before its time, and the claim says when that is',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    const [id] = await queue.enqueue({ delayMs: 3_600_000 })
    const early = await queue.claim(5)
    expect(early.jobs).toEqual([])
    expect(early.nextDueMs).toBeGreaterThan(3_500_000)
    expect(early.nextDueMs).toBeLessThanOrEqual(3_600_000)
    expect(await queue.record(id)).toMatchObject({ state: 'scheduled', attempt: 0 })
    await advance(queue.name, '1 hour')
    expect((await queue.claim(5)).ids).toEqual([id])
  },
)

test.each(STRATEGIES)('%s: a job becomes due by itself, while nobody enqueues', async (strategy) => {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { strategy })
  const [id] = await queue.enqueue({ delayMs: 200 })
  const claim = await until(
    async () => {
      const each = await queue.claim(5)
      return each.jobs.length > 0 ? each : undefined
    },
    { until: 'the job is due' },
  )
  expect(claim.ids).toEqual([id])
  expect(await database.value('select run_at <= clock_timestamp() from :schema.job where id = $1', [id])).toBe(true)
})

test.each(STRATEGIES)(
  '%s: all that are due at once are claimed, though only some are promoted by each claim',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    const jobs = Array.from({ length: 1_100 }, (_, n) => ({ tenant: `t${n % 7}`, delayMs: 3_600_000 }))
    const ids = await queue.enqueue(...jobs)
    await advance(queue.name, '2 hours')
    const claimed = await queue.claimAll(500)
    expect(claimed.map(({ id }) => id).sort()).toEqual(ids.sort())
  },
)

test('a claim that leaves behind what is due says that the next is due now, and the last one that nothing is', async () => {
  const queue = database.queue()
  await queue.enqueueMany(450, { delayMs: 3_600_000 })
  await advance(queue.name, '2 hours')
  for (let left = 450; left > 0; ) {
    const claim = await queue.claim(500)
    expect(claim.jobs.length).toBeGreaterThan(0)
    left -= claim.jobs.length
    expect(claim.nextDueMs).toBe(left > 0 ? 0 : undefined)
  }
})

test('a full claim does not say when the next job is due, since the next claim comes at once', async () => {
  const queue = database.queue()
  await queue.enqueue({}, {}, { delayMs: 60_000 })
  expect((await queue.claim(1)).nextDueMs).toBeUndefined()
  expect((await queue.claim(2)).nextDueMs).toBeGreaterThan(0)
})

test('what is due has its place by run_at and priority among what was always available', async () => {
  const queue = database.queue()
  const [late] = await queue.enqueue({ delayMs: 3_600_000 })
  const [urgent] = await queue.enqueue({ delayMs: 3_600_000, priority: 120 })
  await advance(queue.name, '59 minutes 59 seconds')
  const [plain] = await queue.enqueue({})
  await database.query(`update :schema.job set run_at = run_at - interval '1 second' where queue = $1`, [queue.name])
  expect((await queue.claimAll(1)).map(({ id }) => id)).toEqual([urgent, plain, late])
})

test('scheduled jobs of a kind that nobody here knows are not promoted and do not set the timer (B03)', async () => {
  const queue = database.queue()
  const [due, later] = await queue.enqueue(
    { kind: 'unknown', delayMs: 60_000 },
    { kind: 'unknown', delayMs: 3_600_000 },
  )
  await advance(queue.name, '2 minutes')
  expect(await queue.claim(5)).toMatchObject({ jobs: [] })
  expect((await queue.claim(5)).nextDueMs).toBeUndefined()
  expect((await queue.record(due)).state).toBe('scheduled')
  expect((await queue.claim(5, { kinds: ['unknown'] })).ids).toEqual([due])
  expect((await queue.record(later)).state).toBe('scheduled')
})

test('scheduled jobs that somebody holds are passed over, and the others are not', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(3, { delayMs: 3_600_000 })
  await advance(queue.name, '2 hours')
  const operator = await database.schema.connect()
  await operator.query('begin')
  await operator.query(database.sql('select from :schema.job where id = $1 for update'), [ids[1]])
  expect((await queue.claim(5)).ids).toEqual([ids[0], ids[2]])
  await operator.query('rollback')
  expect((await queue.claim(5)).ids).toEqual([ids[1]])
  await expectSound(database)
})

test('a tenant whose job is due does not wait behind all that is due of another tenant, whose jobs were due before', async () => {
  const queue = database.queue()
  const due = (tenant: string, count: number, seconds: number) =>
    database.query(
      `insert into :schema.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
       select $1, 'send-invoice', $2, 'scheduled', 0, 20, moment.at, moment.at, moment.at, '{}'
       from generate_series(1, $3::integer), (select now() - $4::integer * interval '1 second' as at) as moment`,
      [queue.name, tenant, count, seconds],
    )
  await due('noisy', 5_000, 10)
  await due('quiet', 3, 9)
  const first = await queue.claim(10)
  expect(first.jobs.filter(({ tenant }) => tenant === 'quiet').length).toBeGreaterThan(0)
})
