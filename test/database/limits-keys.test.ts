import { describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/settle/outcome.js'
import { type HeldClaim, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { newJob } from '../support/factory.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

const KINDS = ['send-invoice', 'other']
const both = { kinds: KINDS }
const FAILURE = { name: 'Error', message: 'no' }

/** Claims and completes until nothing is left. */
async function drain(limited: LimitedQueue): Promise<string[]> {
  const ids: string[] = []
  for (let round = 0; (await limited.left()) > 0; round += 1) {
    expect(round, 'jobs are left that no claim finds').toBeLessThan(500)
    await limited.makeDue()
    const claim = await limited.queue.claim(20, both)
    ids.push(...(await limited.queue.settle(claim)))
    if (claim.jobs.length === 0) await limited.age(0.3)
  }
  await expectSound(database)
  return ids
}

async function lock(ids: readonly (string | undefined)[]) {
  const operator = await database.session()
  await operator.run('begin')
  await operator.run('select from :schema.job where id = any ($1::bigint[]) for update', [ids])
  return operator
}

describe('a limit of one', () => {
  test('runs jobs one after another in order, across tenants and kinds', async () => {
    const { queue } = new LimitedQueue(database)
    const ids: string[] = []
    for (let n = 0; n < 12; n += 1) {
      ids.push(...(await queue.enqueue({ key: 'k', tenant: `t${n % 3}`, kind: KINDS[n % 2] as string })))
    }
    for (const id of ids) {
      const claim = await queue.claim(10, both)
      expect(claim.ids).toEqual([id])
      expect((await queue.claim(10, both)).ids).toEqual([])
      await queue.settle(claim)
    }
  })

  const OUTCOMES: readonly Outcome[] = [
    { type: 'retry', delayMs: 60_000, failure: FAILURE },
    { type: 'retry', delayMs: 0, failure: FAILURE },
    { type: 'snooze', delayMs: 60_000 },
    { type: 'release' },
  ]

  test.each(OUTCOMES)('keeps the order when a job comes back: $type $delayMs', async (outcome) => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    const [first, second] = [
      ...(await queue.enqueue({ key: 'k' })),
      ...(await queue.enqueue({ key: 'k', tenant: 'b' })),
    ]
    await queue.settle(await queue.claim(), outcome)
    if ('delayMs' in outcome && outcome.delayMs > 0) {
      for (let n = 0; n < 3; n += 1) expect((await queue.claim(5)).ids).toEqual([])
      await limited.makeDue()
    }
    const again = await queue.claim(5)
    expect(again.ids).toEqual([first])
    await queue.settle(again)
    expect((await queue.claim(5)).ids).toEqual([second])
  })

  test('keeps the order when a worker dies, and lets the next one go when it is given up', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    const [first] = await queue.enqueue({ key: 'k', maxAttempts: 2 })
    const [second] = await queue.enqueue({ key: 'k', tenant: 'b' })
    const lost = await queue.claim()
    await limited.reclaim([lost.leaseId])
    const again = await queue.claim(5)
    expect(again.ids).toEqual([first])
    expect(await queue.settle(lost)).toEqual([])
    expect((await queue.claim(5)).ids).toEqual([])
    await limited.reclaim([again.leaseId])
    expect((await queue.claim(5)).ids).toEqual([second])
  })

  test('lets a job of higher priority go before those that wait, and not before the one that runs', async () => {
    const { queue } = new LimitedQueue(database)
    const [first] = await queue.enqueue({ key: 'k' })
    const [second] = await queue.enqueue({ key: 'k' })
    const running = await queue.claim(5)
    const [urgent] = await queue.enqueue({ key: 'k', priority: 10 })
    expect((await queue.claim(5)).ids).toEqual([])
    await queue.settle(running)
    const next = await queue.claim(5)
    await queue.settle(next)
    const last = await queue.claim(5)
    expect([running.ids, next.ids, last.ids]).toEqual([[first], [urgent], [second]])
  })

  test('lets nobody by when its first job is held by another session, and goes on afterwards', async () => {
    const limited = new LimitedQueue(database)
    const ids = [...(await limited.queue.enqueue({ key: 'k' })), ...(await limited.queue.enqueue({ key: 'k' }))]
    const operator = await lock([ids[0]])
    for (let n = 0; n < 3; n += 1) {
      expect((await limited.queue.claim(5)).ids).toEqual([])
      await limited.age(1)
    }
    await operator.run('rollback')
    await limited.age(1)
    expect((await limited.queue.claim(5)).ids).toEqual([ids[0]])
    await limited.queue.settle(await limited.queue.claim(5))
  })

  test('lets the next one go when the first is cancelled while it waits for its retry', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    const [first] = await queue.enqueue({ key: 'k' })
    const [second] = await queue.enqueue({ key: 'k' })
    await queue.settle(await queue.claim(), { type: 'retry', delayMs: 60_000, failure: FAILURE })
    expect((await queue.claim()).ids).toEqual([])
    expect(await queue.store.cancel(first ?? '', 'not needed')).toBe(true)
    expect((await queue.claim()).ids).toEqual([second])
  })

  test.each(['cancel_all', 'purge'])(
    'lets the next one go after %s of the tenant that holds its place',
    async (call) => {
      const limited = new LimitedQueue(database)
      const { queue } = limited
      await queue.enqueue({ key: 'k' })
      const [second] = await queue.enqueue({ key: 'k', tenant: 'b' })
      await queue.settle(await queue.claim(), { type: 'snooze', delayMs: 60_000 })
      expect((await queue.claim()).ids).toEqual([])
      await database.query(`select :schema.${call}($1, '{"tenant": "acme"}')`, [queue.name])
      expect((await queue.claim()).ids).toEqual([second])
    },
  )

  test.each(['fifo', 'round-robin'])('holds in a %s queue too, in order', async (strategy) => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy })
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.push(...(await limited.queue.enqueue({ key: 'k', tenant: `t${n}` })))
    const free = await limited.queue.enqueueMany(3, { tenant: 'free' })
    const claim = await limited.queue.claim(10)
    expect(claim.ids.sort()).toEqual([ids[0], ...free].sort())
    await limited.queue.settle(claim, { type: 'release' })
    expect((await limited.queue.claim(10)).ids.sort()).toEqual([ids[0], ...free].sort())
    expect(await limited.running('key')).toEqual({ k: 1 })
  })
})

describe('other limits', () => {
  test.each(['fair', 'fifo', 'round-robin'])(
    'of a key: raised, lowered below what runs, 0, removed; %s',
    async (strategy) => {
      const limited = new LimitedQueue(database)
      const { queue } = limited
      await limited.set({ strategy, key_concurrency: 2 })
      await queue.enqueueMany(30, { key: 'k' })
      const held: HeldClaim[] = []
      const claim = async () => {
        held.push(await queue.claim(40))
        return held.at(-1)?.jobs.length
      }
      expect(await claim()).toBe(2)
      await limited.setKey('k', { concurrency: 5 })
      expect(await claim()).toBe(3)
      await limited.setKey('k', { concurrency: 1 })
      expect(await claim()).toBe(0)
      await queue.settle(held[0] as HeldClaim)
      expect(await claim()).toBe(0)
      await queue.settle(held[1] as HeldClaim)
      expect(await claim()).toBe(1)
      await limited.setKey('k', { concurrency: 0 })
      await queue.settle(held.at(-1) as HeldClaim)
      expect(await claim()).toBe(0)
      await limited.setKey('k', { concurrency: null })
      expect(await claim()).toBe(2)
      await limited.set({ key_concurrency: null })
      await queue.settle(held.at(-1) as HeldClaim)
      expect(await claim()).toBe(1)
      await queue.settle(held.at(-1) as HeldClaim)
      expect(await drain(limited)).toHaveLength(30 - 9)
    },
  )

  test('lowered below what is admitted, of a tenant that is paused: no more than the new limit start', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.setKey('k', { concurrency: 10 })
    await queue.enqueueMany(20, { key: 'k' })
    await limited.pause({ tenant: 'acme' })
    expect((await queue.claim(20)).ids).toEqual([])
    await limited.setKey('k', { concurrency: 3 })
    await limited.resume({ tenant: 'acme' })
    expect((await queue.claim(20)).ids).toHaveLength(3)
    expect(await limited.running('key')).toEqual({ k: 3 })
  })

  test('lowered while an admitted job is held by another session: it does not start beyond the new limit', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.setKey('k', { concurrency: 3 })
    const ids = await queue.enqueueMany(3, { key: 'k' })
    await limited.pause({ tenant: 'acme' })
    await queue.claim(20)
    const operator = await lock(ids)
    await limited.setKey('k', { concurrency: 1 })
    expect((await queue.claim(20)).ids).toEqual([])
    await operator.run('rollback')
    await limited.resume({ tenant: 'acme' })
    expect((await queue.claim(20)).ids).toEqual([ids[0]])
    expect(await limited.running('key')).toEqual({ k: 1 })
  })

  test('lowered: it acts at the next claim, however much else that has to fold in', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.setKey('k', { concurrency: 10 })
    await queue.enqueueMany(20, { key: 'k', kind: 'other' })
    // Admits ten, for workers that know the kind.
    expect((await queue.claim(20)).ids).toEqual([])
    await queue.store.enqueue(Array.from({ length: 1_000 }, (_, n) => newJob({ queue: queue.name, key: `k${n}` })))
    await limited.setKey('k', { concurrency: 1 })
    expect((await queue.claim(20, { kinds: ['other'] })).ids).toHaveLength(1)
  })

  test('of many keys at once: a claim is filled although each job has a key of its own', async () => {
    const { queue } = new LimitedQueue(database)
    await queue.store.enqueue(Array.from({ length: 600 }, (_, n) => newJob({ queue: queue.name, key: `k${n}` })))
    expect((await queue.claim(500)).ids).toHaveLength(500)
    expect((await queue.claim(500)).ids).toHaveLength(100)
  })
})

describe('nothing is ever stuck', () => {
  test.each(['fair', 'fifo', 'round-robin'])('after a crash that empties the unlogged tables; %s', async (strategy) => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy })
    for (let n = 0; n < 40; n += 1) await limited.queue.enqueue({ key: `k${n % 7}`, tenant: `t${n % 3}` })
    await limited.queue.claim(5)
    await limited.queue.settle(await limited.queue.claim(3), { type: 'retry', delayMs: 60_000, failure: FAILURE })
    await crash(limited.name)
    await limited.reclaim(
      (await database.query<{ id: string }>('select id from :schema.lease where queue = $1', [limited.name])).map(
        ({ id }) => id,
      ),
    )
    await crash(limited.name)
    expect(await drain(limited)).toHaveLength(40)
  })

  test('10,000 jobs of one key ahead of all others cost a claim nothing', async () => {
    const limited = new LimitedQueue(database)
    await limited.queue.enqueueMany(10_000, { key: 'k' })
    const [other] = await limited.queue.enqueue({ tenant: 'acme' })
    const first = await limited.queue.claim(5)
    expect(first.jobs.length).toBe(2)
    expect(first.ids).toContain(other)
    for (let n = 0; n < 5; n += 1) expect((await limited.queue.claim(5)).ids).toEqual([])
  })
})

/** What a crash of the server leaves of the unlogged tables, for one queue. */
async function crash(queue: string): Promise<void> {
  for (const table of ['ring', 'group_ring', 'walk', 'signal', 'notice', 'key_timer', 'waiter']) {
    await database.query(`delete from :schema.${table} where queue = $1`, [queue])
  }
}
