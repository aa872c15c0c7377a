import { describe, expect, test } from 'vitest'
import { type HeldClaim, useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

/** What a crash of the server leaves of the unlogged tables, for one queue: nothing. */
async function crash(queue: string): Promise<void> {
  for (const table of ['ring', 'group_ring', 'walk', 'signal', 'notice', 'key_timer', 'waiter']) {
    await database.query(`delete from :schema.${table} where queue = $1`, [queue])
  }
}

/** So often may workers have to ask, a poll apart, until what was lost is found. */
const CLAIMS_MAX = 3

async function found(limited: LimitedQueue, count: number): Promise<HeldClaim> {
  for (let n = 0; n < CLAIMS_MAX; n += 1) {
    const claim = await limited.queue.claim(count)
    if (claim.ids.length > 0) return claim
    await limited.age(6)
  }
  throw new Error(`expected ${CLAIMS_MAX} claims, some seconds apart, to find what waits`)
}

test('a settling that began before there was a limit tells of no slot, and the slot is found all the same', async () => {
  const limited = new LimitedQueue(database)
  await limited.queue.enqueueMany(10)
  const running = await limited.queue.claim(2)
  const worker = await database.session()
  await worker.run('begin')
  await worker.run('select :schema.complete_v1($1, $2, $3, $4)', [
    limited.name,
    running.ids,
    running.ids.map(() => running.leaseId),
    [],
  ])
  await limited.setTenant('acme', { concurrency: 2 })
  expect((await limited.queue.claim(5)).ids).toEqual([])
  await worker.run('commit')
  expect((await found(limited, 5)).ids).toHaveLength(2)
})

describe('after a crash, nothing needs help', () => {
  test('tenants at their limits, paused ones, and keys', async () => {
    const limited = new LimitedQueue(database)
    await limited.setTenant('limited', { concurrency: 1 })
    await limited.pause({ tenant: 'paused' })
    for (const tenant of ['limited', 'paused']) await limited.queue.enqueueMany(10, { tenant })
    for (const tenant of ['limited', 'x', 'y']) await limited.queue.enqueueMany(2, { tenant, key: 'k' })
    const first = await limited.queue.claim(20)
    expect(first.ids.length).toBeLessThanOrEqual(2)
    await limited.queue.settle(first)
    await crash(limited.name)
    await limited.resume({ tenant: 'paused' })
    await crash(limited.name)
    for (let round = 0; (await limited.left()) > 0; round += 1) {
      expect(round, 'jobs are left that no claim finds').toBeLessThan(40)
      const claim = await found(limited, 20)
      expect(claim.tenants.filter((tenant) => tenant === 'limited').length).toBeLessThanOrEqual(1)
      expect(claim.jobs.filter(({ key }) => key === 'k').length).toBeLessThanOrEqual(1)
      await limited.queue.settle(claim)
    }
  })

  test('a rate still counts what had started', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ tenant_rate: { limit: 1, per_ms: 3_600_000, burst: 2 } })
    await limited.queue.enqueueMany(10)
    expect((await limited.queue.claim(5)).ids).toHaveLength(2)
    await crash(limited.name)
    expect((await limited.queue.claim(5)).ids).toEqual([])
    await limited.age(3_601)
    expect((await found(limited, 5)).ids).toHaveLength(1)
  })

  test('groups share again', async () => {
    const limited = new LimitedQueue(database)
    for (const tenant of ['a', 'b', 'c']) await limited.setTenant(tenant, { group: 'g' })
    for (const tenant of ['a', 'b', 'c', 'lone']) await limited.queue.enqueueMany(100, { tenant })
    for (let n = 0; n < 5; n += 1) await limited.queue.settle(await limited.queue.claim(4))
    await crash(limited.name)
    let lone = 0
    for (let n = 0; n < 20; n += 1) {
      const claim = await limited.queue.claim(4)
      expect(claim.ids).toHaveLength(4)
      lone += claim.tenants.filter((tenant) => tenant === 'lone').length
      await limited.queue.settle(claim)
    }
    expect(Math.abs(lone - 40)).toBeLessThanOrEqual(2)
  })
})

test('of many tenants whose notices are lost, each is looked at again in its turn', async () => {
  const limited = new LimitedQueue(database)
  await limited.set({ tenant_concurrency: 1 })
  const tenants = Array.from({ length: 30 }, (_, n) => `t${n}`)
  for (const tenant of tenants) await limited.queue.enqueueMany(2, { tenant })
  const first = await limited.queue.claim(100)
  expect(first.ids).toHaveLength(30)
  expect((await limited.queue.claim(100)).ids).toEqual([])
  await limited.queue.settle(first)
  await database.query('delete from :schema.notice where queue = $1', [limited.name])
  await limited.age(6)
  const claimed: string[] = []
  for (let n = 0; claimed.length < 30; n += 1) {
    expect(n, 'claims until all were looked at again').toBeLessThan(40)
    claimed.push(...(await limited.queue.claim(100)).tenants)
  }
  expect(new Set(claimed).size).toBe(30)
})

test('tenants at their limits are not forgotten by maintenance, and start again among others who fill every claim', async () => {
  const limited = new LimitedQueue(database)
  await limited.setTenant('limited', { concurrency: 1 })
  await limited.queue.enqueueMany(5, { tenant: 'limited' })
  await limited.queue.enqueueMany(300, { tenant: 'busy' })
  const first = await limited.queue.claim(2)
  expect(first.tenants.sort()).toEqual(['busy', 'limited'])
  for (let n = 0; n < 20; n += 1) await limited.queue.claim(4)
  await database.query('select :schema.prune_ring_v1(1000)')
  // No walk comes by.
  await database.query(`update :schema.walk set walk_at = now() + interval '1 hour' where queue = $1`, [limited.name])
  await limited.queue.settle(first)
  expect((await limited.queue.claim(4)).tenants).toContain('limited')
})
