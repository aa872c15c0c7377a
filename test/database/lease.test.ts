import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { TestQueue, useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'

const database = useSharedDatabase()

/** Expired from the beginning: no test waits for a lease to run out. */
const EXPIRED = { leaseMs: -1 }

async function expiresInMs(leaseId: string): Promise<number> {
  return database.value(
    'select (extract(epoch from expires_at - clock_timestamp()) * 1000)::float8 from :schema.lease where id = $1',
    [leaseId],
  )
}

test('a lease lasts as long as the claim asks, by the clock of the database', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2)
  const claim = await queue.claim(2, { leaseMs: 30_000 })
  const left = await expiresInMs(claim.leaseId)
  expect(left).toBeGreaterThan(20_000)
  expect(left).toBeLessThanOrEqual(30_000)
})

test('extending prolongs the leases that are held and no others, and rewrites no job', async () => {
  const queue = database.queue()
  await queue.enqueueMany(6)
  const claims = [await queue.claim(2), await queue.claim(2), await queue.claim(2)]
  const [first, second, other] = claims.map(({ leaseId }) => leaseId) as [string, string, string]
  const versions = 'select id, xmin::text, ctid::text from :schema.job where queue = $1 order by id'
  const before = await database.query(versions, [queue.name])
  const missing = randomUUID()
  expect(await database.store.extend([first, missing, second], 600_000)).toEqual(new Set([first, second]))
  expect(await expiresInMs(first)).toBeGreaterThan(500_000)
  expect(await expiresInMs(second)).toBeGreaterThan(500_000)
  expect(await expiresInMs(other)).toBeLessThanOrEqual(60_000)
  expect(await database.query(versions, [queue.name])).toEqual(before)
  expect(await database.store.extend([], 600_000)).toEqual(new Set())
})

test('extending can shorten too: a lease ends when the last beat says, counted from that beat', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const { leaseId } = await queue.claim(1, { leaseMs: 600_000 })
  await database.store.extend([leaseId], 5_000)
  expect(await expiresInMs(leaseId)).toBeLessThanOrEqual(5_000)
})

test('jobs of an expired lease go back with their error and a bounded, jittered delay, and the attempt stays counted', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(40, { priority: 4 })
  const claim = await queue.claim(40, EXPIRED)
  const reclaimed = await database.store.reclaim()
  expect(reclaimed).toMatchObject({ retried: 40, discarded: 0 })
  expect(reclaimed.nextDueMs).toBeGreaterThanOrEqual(0)
  expect(reclaimed.nextDueMs).toBeLessThanOrEqual(1_000)
  const rows = await database.query<Record<string, unknown>>(
    `select state, attempt, lease_id, run_at <= clock_timestamp() + interval '1 second' as soon,
            order_at - run_at between interval '-4 minutes' and interval '-4 minutes' + interval '1 millisecond' as ordered,
            errors -> 0 ->> 'name' as name, errors -> 0 -> 'attempt' as of
     from :schema.job where queue = $1`,
    [queue.name],
  )
  const expected = {
    state: 'scheduled',
    attempt: 1,
    lease_id: null,
    soon: true,
    ordered: true,
    name: 'LeaseExpired',
    of: 1,
  }
  expect(rows).toEqual(Array(40).fill(expected))
  const times = 'select count(distinct run_at)::int from :schema.job where queue = $1'
  expect(await database.value(times, [queue.name])).toBeGreaterThan(30)
  expect(await database.query('select from :schema.lease where id = $1', [claim.leaseId])).toEqual([])
  expect(ids).toHaveLength(40)
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
})

test.each([
  [3, 4],
  [9, 256],
  [10, 300],
  [50, 300],
  [9_998, 300],
])('after attempt %i the back-off of a reclaimed job is at most %i seconds (B40)', async (attempt, seconds) => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(5, { maxAttempts: 10_000 })
  await database.query('update :schema.job set attempt = $2 where queue = $1', [queue.name, attempt - 1])
  await queue.claim(5, EXPIRED)
  await database.store.reclaim()
  const later = await database.query(
    `select id from :schema.job where id = any ($1::bigint[]) and run_at > clock_timestamp() + $2 * interval '1 second'`,
    [ids, seconds],
  )
  expect(later).toEqual([])
})

test('the last attempt of a job that lost its worker is discarded with the reason, its payload and its errors (B29)', async () => {
  const queue = database.queue()
  const [once, thrice, young] = await queue.enqueue({ maxAttempts: 1, payload: '{"a":1}' }, { maxAttempts: 3 }, {})
  await database.query(
    `update :schema.job set attempt = 2, errors = '[{"attempt": 1, "name": "E", "message": "m", "at": "x"}]' where id = $1`,
    [thrice],
  )
  await queue.claim(3, EXPIRED)
  expect(await database.store.reclaim()).toMatchObject({ retried: 1, discarded: 2 })
  expect(await queue.record(once)).toMatchObject({ state: 'discarded', attempt: 1, payload: { a: 1 } })
  const { errors, ...gone } = await queue.record(thrice)
  expect(gone).toMatchObject({ state: 'discarded', attempt: 3, maxAttempts: 3 })
  expect(errors.map(({ name, attempt }) => [attempt, name])).toEqual([
    [1, 'E'],
    [3, 'LeaseExpired'],
  ])
  expect((await queue.record(young)).state).toBe('scheduled')
  expect((await queue.claimAll(5)).map(({ id }) => id)).not.toContain(once)
  await expectSound(database)
})

test('a job whose worker is lost every time is run as often as it may be, and then discarded (B30)', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ maxAttempts: 3 })
  const attempts: number[] = []
  while ((await queue.record(id)).state !== 'discarded') {
    await database.query(`update :schema.job set run_at = now() - interval '1 second' where queue = $1`, [queue.name])
    attempts.push(...(await queue.claim(1, EXPIRED)).jobs.map(({ attempt }) => attempt))
    await database.store.reclaim()
  }
  expect(attempts).toEqual([1, 2, 3])
})

test('leases that are still held, and jobs that are not under an expired one, are left alone', async () => {
  const queue = database.queue()
  await queue.enqueueMany(4)
  const held = await queue.claim(2)
  await queue.claim(1, EXPIRED)
  expect(await database.store.reclaim()).toMatchObject({ retried: 1, discarded: 0 })
  expect((await database.store.claimed(held.leaseId)).map(({ id }) => id)).toEqual(held.ids)
  expect((await queue.claim(5)).jobs).toHaveLength(1)
})

test('a lease that was extended in time is not reclaimed (B34)', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const claim = await queue.claim(1, EXPIRED)
  expect(await database.store.extend([claim.leaseId], 60_000)).toEqual(new Set([claim.leaseId]))
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  expect(await queue.settle(claim)).toEqual(claim.ids)
})

test('an expired lease without jobs is removed and counts as nothing', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const claim = await queue.claim(1, EXPIRED)
  await database.store.settle(queue.name, claim.settlements(), [])
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  expect(await database.query('select from :schema.lease where id = $1', [claim.leaseId])).toEqual([])
})

test('jobs of all queues and kinds are reclaimed, whether or not anybody knows them', async () => {
  const queues = [database.queue(), database.queue()]
  for (const { name } of queues) await new TestQueue(database.store, name).enqueue({ kind: 'a' }, { kind: 'b' })
  for (const queue of queues) await queue.claim(2, { ...EXPIRED, kinds: ['a', 'b'] })
  expect(await database.store.reclaim()).toMatchObject({ retried: 4 })
})

test('thousands of expired leases are reclaimed a bounded number a call', async () => {
  const queue = database.queue()
  await queue.enqueueMany(230)
  for (let n = 0; n < 230; n++) await queue.claim(1, EXPIRED)
  const calls: number[] = []
  for (
    let reclaimed = await database.store.reclaim();
    reclaimed.retried > 0;
    reclaimed = await database.store.reclaim()
  ) {
    calls.push(reclaimed.retried)
  }
  expect(calls.reduce((sum, count) => sum + count, 0)).toBe(230)
  expect(Math.max(...calls)).toBeLessThanOrEqual(100)
})

test('a reclaimed job wakes the workers of its queue, which set their timers to it', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  await queue.claim(1, EXPIRED)
  await queue.claim(1, { listening: true })
  const client = await database.schema.connect()
  const woken = new Promise<string | undefined>((resolve) =>
    client.on('notification', ({ payload }) => resolve(payload)),
  )
  await client.query(`listen ${await database.store.channel()}`)
  await database.store.reclaim()
  expect(await woken).toBe(queue.name)
})

test('the table itself refuses a running job without a lease, a lease on a job that waits, and an attempt too many', async () => {
  const queue = database.queue()
  const [running] = await queue.enqueue({ runAt: new Date('2020-01-01') })
  await queue.claim(1)
  const [waiting] = await queue.enqueue({ maxAttempts: 2 })
  const changes = [
    [waiting, `state = 'running'`],
    [waiting, 'lease_id = gen_random_uuid()'],
    [waiting, 'attempt = 2'],
    [waiting, 'attempt = -1'],
    [running, 'lease_id = null'],
    [running, `state = 'available'`],
    [running, 'attempt = max_attempts + 1'],
  ]
  for (const [id, change] of changes) {
    const update = database.query(`update :schema.job set ${change} where id = $1`, [id])
    expect(await databaseErrorOf(update), change).toMatchObject({ code: '23514' })
  }
})
