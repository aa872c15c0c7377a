import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'

const database = useSharedDatabase()

async function queueWith(strategy: (typeof STRATEGIES)[number]): Promise<TestQueue> {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { strategy })
  return queue
}

const MINUTE = 60_000

/** Times that are all past, so that a job enqueued with one is due at once. */
function past(minutes: number): Date {
  return new Date(Date.UTC(2020, 0, 1) + minutes * MINUTE)
}

test.each(STRATEGIES)('%s: an empty queue gives nothing and says that nothing is scheduled', async (strategy) => {
  const queue = await queueWith(strategy)
  expect(await queue.claim(10)).toEqual({ queue: queue.name, leaseId: expect.any(String), jobs: [] })
})

test.each(STRATEGIES)(
  '%s: a claim gives what it was asked for while there is enough, and then the rest',
  async (strategy) => {
    const queue = await queueWith(strategy)
    const ids = await queue.enqueue(...Array.from({ length: 57 }, (_, n) => ({ tenant: `t${n % 5}` })))
    const claims = [await queue.claim(20), await queue.claim(20), await queue.claim(20), await queue.claim(20)]
    expect(claims.map(({ jobs }) => jobs.length)).toEqual([20, 20, 17, 0])
    expect(claims.flatMap((claim) => claim.ids).sort()).toEqual(ids.sort())
    await expectSound(database)
  },
)

test.each(STRATEGIES)(
  '%s: what a claim marks is what it answers with: running, leased, attempt counted',
  async (strategy) => {
    const queue = await queueWith(strategy)
    const [id] = await queue.enqueue({ payload: '{"a":1}', priority: 3, maxAttempts: 9, tenant: 'x' })
    const claim = await queue.claim(5, { workerId: 'host:1' })
    expect(claim.jobs).toMatchObject([{ id, payload: { a: 1 }, priority: 3, maxAttempts: 9, attempt: 1, errors: [] }])
    expect(
      await database.query(
        `select state, attempt, job.lease_id, worker_id, lease.queue, job.claimed_at > created_at as later,
              expires_at - lease.claimed_at >= interval '59 seconds' as held
       from :schema.job join :schema.lease on lease.id = lease_id where job.id = $1`,
        [id],
      ),
    ).toEqual([
      {
        state: 'running',
        attempt: 1,
        lease_id: claim.leaseId,
        worker_id: 'host:1',
        queue: queue.name,
        later: true,
        held: true,
      },
    ])
  },
)

test.each(STRATEGIES)('%s: a claim that finds nothing leaves no lease behind', async (strategy) => {
  const queue = await queueWith(strategy)
  const { leaseId } = await queue.claim(5)
  expect(await database.query('select from :schema.lease where id = $1', [leaseId])).toEqual([])
})

test.each(STRATEGIES)(
  '%s: the jobs of one tenant come in the order of order_at, then of their ids',
  async (strategy) => {
    const queue = await queueWith(strategy)
    // A point of priority is worth a minute of waiting, so the fourth and the fifth share one place, and the id decides.
    const jobs = [
      { runAt: past(10), priority: 0 },
      { runAt: past(5), priority: 0 },
      { runAt: past(20), priority: 30 },
      { runAt: past(3), priority: -5 },
      { runAt: past(8), priority: 0 },
      { runAt: past(8), priority: 0 },
      { runAt: past(30), priority: -1_000 },
    ]
    const ids = await queue.enqueue(...jobs)
    const order = [2, 1, 3, 4, 5, 0, 6].map((index) => ids[index])
    expect((await queue.claimAll(1)).map(({ id }) => id)).toEqual(order)
  },
)

test('a job of low priority is overtaken for as many minutes as it is lower, and no longer', async () => {
  const queue = database.queue()
  const [low] = await queue.enqueue({ priority: -10, runAt: past(0) })
  const before = await queue.enqueue(...[0, 5, 9].map((minutes) => ({ runAt: past(minutes) })))
  const after = await queue.enqueue(...[11, 15].map((minutes) => ({ runAt: past(minutes) })))
  expect((await queue.claimAll(2)).map(({ id }) => id)).toEqual([...before, low, ...after])
})

test.each(STRATEGIES)('%s: the kinds of one tenant come in one order, whatever their kind', async (strategy) => {
  const queue = await queueWith(strategy)
  const kinds = ['a', 'b', 'c']
  const minutes = [7, 1, 4, 2, 9, 3, 8, 6, 5, 0]
  const ids = await queue.enqueue(...minutes.map((at, n) => ({ kind: kinds[n % 3] as string, runAt: past(at) })))
  const order = minutes.map((at, n) => ({ at, id: ids[n] })).sort((a, b) => a.at - b.at)
  for (const size of [1, 3, 6]) {
    const claim = await queue.claim(size, { kinds })
    expect(claim.ids).toEqual(order.splice(0, size).map(({ id }) => id))
  }
})

test.each(['fair', 'fifo'] as const)(
  '%s: the jobs of one claim are sorted even when it asks for many',
  async (strategy) => {
    const queue = await queueWith(strategy)
    const ids = await queue.enqueueMany(700)
    const claims = [await queue.claim(500), await queue.claim(500)]
    expect(claims.flatMap((claim) => claim.ids)).toEqual(ids)
  },
)

test('fifo takes the oldest of all tenants, and starts them in that order', async () => {
  const queue = await queueWith('fifo')
  const ids = await queue.enqueueMany(30, { tenant: 'noisy' })
  const [quiet] = await queue.enqueue({ tenant: 'quiet' })
  const claim = await queue.claim(31)
  expect(claim.ids).toEqual([...ids, quiet])
})

test('fair starts the jobs of one claim by one of each tenant in turn', async () => {
  const queue = database.queue()
  await queue.enqueueMany(30, { tenant: 'noisy' })
  await queue.enqueueMany(3, { tenant: 'quiet' })
  const { tenants } = await queue.claim(20)
  expect(tenants.slice(0, 6).sort()).toEqual(['noisy', 'noisy', 'noisy', 'quiet', 'quiet', 'quiet'])
  expect(tenants.slice(0, 2).sort()).toEqual(['noisy', 'quiet'])
})

test('a claim does not see the jobs of another queue', async () => {
  const [one, other] = [database.queue(), database.queue()]
  await one.enqueue({})
  expect((await other.claim(5)).jobs).toEqual([])
  expect((await one.claim(5)).jobs).toHaveLength(1)
})

test.each([0, -1, 501, null])('a claim of %s jobs is refused, not rounded (B16)', async (count) => {
  const queue = database.queue()
  await queue.enqueueMany(3)
  const error = await databaseErrorOf(queue.claim(count as number))
  expect(error.code).toBe('22023')
  expect(error.message).toMatch(/^expected the number of jobs to claim to be from 1 to 500, got /)
  expect((await queue.claim(3)).jobs).toHaveLength(3)
})

test('a kind that is named twice is one kind, and no kind is none', async () => {
  for (const strategy of STRATEGIES) {
    const queue = await queueWith(strategy)
    const ids = await queue.enqueueMany(10)
    expect((await queue.claim(8, { kinds: [] })).jobs).toEqual([])
    expect((await queue.claim(8, { kinds: ['send-invoice', 'send-invoice'] })).ids).toEqual(ids.slice(0, 8))
  }
})

test('a lease id that was used before is refused, and the claim takes nothing', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(2)
  const first = await queue.claim(1)
  expect(await databaseErrorOf(queue.claim(1, { leaseId: first.leaseId }))).toMatchObject({ code: '23505' })
  expect((await database.store.claimed(first.leaseId)).map(({ id }) => id)).toEqual([ids[0]])
  expect((await queue.claim(2)).ids).toEqual([ids[1]])
})

test('a claim whose reply was lost is found by its lease id, with the same jobs in the same order (B04)', async () => {
  const queue = database.queue()
  const leaseId = randomUUID()
  await queue.enqueue(...Array.from({ length: 9 }, (_, n) => ({ priority: n % 3 })))
  const claim = await queue.claim(9, { leaseId })
  expect(await database.store.claimed(leaseId)).toEqual(claim.jobs)
  expect(await database.store.claimed(randomUUID())).toEqual([])
})

test.each(STRATEGIES)(
  '%s: many claims of several connections at once take every job exactly once',
  async (strategy) => {
    const { name } = await queueWith(strategy)
    const jobs = Array.from({ length: 120 }, (_, n) => ({ tenant: `t${n % 9}`, kind: `k${n % 2}` }))
    const ids = await database.queue(name).enqueue(...jobs)
    const claim = async () => {
      await using open = openStore(database.schema)
      const queue = new TestQueue(open.store, name)
      const claims = []
      for (let n = 0; n < 10; n++) claims.push(await queue.claim(1 + (n % 5), { kinds: ['k0', 'k1'] }))
      return claims.flatMap((each) => each.ids)
    }
    const claimed = (await Promise.all([claim(), claim(), claim(), claim()])).flat()
    expect(claimed.sort()).toEqual(ids.sort())
    await expectSound(database)
  },
)
