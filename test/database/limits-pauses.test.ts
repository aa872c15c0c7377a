import { describe, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { countTenants } from '../support/fair-share.js'
import { LimitedQueue } from '../support/limits.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

const FAILURE = { name: 'Error', message: 'no' }
const KINDS = { kinds: ['send-invoice', 'other'] }

const SCOPES = [
  { what: 'a queue', scope: {}, strategy: 'fair' },
  { what: 'a FIFO queue', scope: {}, strategy: 'fifo' },
  { what: 'a round-robin queue', scope: {}, strategy: 'round-robin' },
  { what: 'a tenant', scope: { tenant: 'acme' }, strategy: 'fair' },
  { what: 'a kind', scope: { kind: 'send-invoice' }, strategy: 'fair' },
]

describe.each(SCOPES)('the pause of $what', ({ scope, strategy }) => {
  test('holds back what waits, is retried, falls due, is reclaimed, comes new, or has a key; and loses nothing (B19)', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.set({ strategy })
    await queue.enqueueMany(20)
    const [running, retried, lost, released] = [
      await queue.claim(3),
      await queue.claim(2),
      await queue.claim(2),
      await queue.claim(2),
    ]
    await limited.pause(scope)
    await limited.pause(scope)
    await queue.settle(retried, { type: 'retry', delayMs: 0, failure: FAILURE })
    await queue.settle(released, { type: 'release' })
    await limited.reclaim([lost.leaseId])
    await queue.enqueue({ delayMs: 1 })
    await queue.enqueue({ key: 'k' })
    await queue.enqueueMany(3)
    for (let n = 0; n < 4; n += 1) {
      expect((await queue.claim(50, KINDS)).ids).toEqual([])
      await limited.age(6)
    }
    expect(await queue.settle(running)).toHaveLength(3)
    expect(await limited.left()).toBe(20 - 3 + 5)
    await limited.resume(scope)
    const claimed = new Set<string>()
    await until(
      async () => {
        for (const id of (await queue.claim(50, KINDS)).ids) claimed.add(id)
        return claimed.size === 22
      },
      { until: 'all are claimed' },
    )
    expect((await queue.record([...claimed][0])).attempt).toBeLessThanOrEqual(2)
  })

  test('does not stop a claim that is under way, and the next one does not begin', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy })
    await limited.queue.enqueueMany(10)
    const claimer = await database.session()
    await claimer.run('begin isolation level read committed')
    expect(await claimer.claim(limited.name, 2)).toHaveLength(2)
    await limited.pause(scope)
    await claimer.run('commit')
    expect((await limited.queue.claim(5)).ids).toEqual([])
    await limited.resume(scope)
    expect((await limited.queue.claim(5)).ids).toHaveLength(5)
  })

  test('that is not committed holds nothing back and makes nobody wait', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy })
    await limited.queue.enqueueMany(10)
    const admin = await database.session()
    await admin.run('begin')
    await admin.run('select :schema.pause($1, $2)', [limited.name, JSON.stringify(scope)])
    const claim = await limited.queue.claim(2)
    expect(claim.ids).toHaveLength(2)
    expect(await limited.queue.settle(claim)).toHaveLength(2)
    await admin.run('commit')
    expect((await limited.queue.claim(2)).ids).toEqual([])
  })
})

test('a tenant that was paused has its fair share when it is resumed, and no more (B19)', async () => {
  const limited = new LimitedQueue(database)
  for (const tenant of ['paused', 'b', 'c']) await limited.queue.enqueueMany(300, { tenant })
  await limited.pause({ tenant: 'paused' })
  for (let n = 0; n < 50; n += 1) await limited.queue.settle(await limited.queue.claim(4))
  await limited.resume({ tenant: 'paused' })
  const served: string[] = []
  for (let n = 0; n < 30; n += 1) {
    const claim = await limited.queue.claim(4)
    served.push(...claim.tenants)
    await limited.queue.settle(claim)
  }
  for (const jobs of countTenants(served).values()) expect(Math.abs(jobs - 40)).toBeLessThanOrEqual(3)
})

test('tenants of a kind that was paused have no credit for it among those of other kinds (B19)', async () => {
  const limited = new LimitedQueue(database)
  for (const tenant of ['waiting', 'both']) await limited.queue.enqueueMany(200, { tenant, kind: 'other' })
  for (const tenant of ['busy', 'both']) await limited.queue.enqueueMany(300, { tenant })
  await limited.pause({ kind: 'other' })
  for (let n = 0; n < 40; n += 1) await limited.queue.settle(await limited.queue.claim(4, KINDS))
  await limited.resume({ kind: 'other' })
  const served: string[] = []
  for (let n = 0; n < 30; n += 1) {
    const claim = await limited.queue.claim(4, KINDS)
    served.push(...claim.tenants)
    await limited.queue.settle(claim)
  }
  for (const jobs of countTenants(served).values()) expect(Math.abs(jobs - 40)).toBeLessThanOrEqual(4)
})

test('a tenant that is paused while another is resumed stays paused', async () => {
  const limited = new LimitedQueue(database)
  for (const tenant of ['a', 'b']) {
    await limited.queue.enqueueMany(10, { tenant })
    await limited.pause({ tenant })
  }
  expect((await limited.queue.claim(10)).ids).toEqual([])
  await limited.resume({ tenant: 'a' })
  expect(new Set((await limited.queue.claim(20)).tenants)).toEqual(new Set(['a']))
})
