import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { countTenants } from '../support/fair-share.js'

const database = useSharedDatabase()

async function roundRobin(): Promise<TestQueue> {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { strategy: 'round-robin' })
  return queue
}

test('tenants take strict turns of one job, and drop out when they have none left', async () => {
  const queue = await roundRobin()
  await queue.enqueueMany(5, { tenant: 'b' })
  await queue.enqueueMany(2, { tenant: 'a' })
  await queue.enqueueMany(3, { tenant: 'c' })
  const served: string[] = []
  for (let n = 0; n < 10; n++) served.push(...(await queue.claim(1)).tenants)
  expect(served.join('')).toBe('abcabcbcbb')
})

test('a batch is so many turns in a row', async () => {
  const queue = await roundRobin()
  for (const tenant of ['a', 'b', 'c']) await queue.enqueueMany(10, { tenant })
  expect(countTenants((await queue.claim(7)).tenants)).toEqual(
    new Map([
      ['a', 3],
      ['b', 2],
      ['c', 2],
    ]),
  )
  expect(countTenants((await queue.claim(2)).tenants)).toEqual(
    new Map([
      ['b', 1],
      ['c', 1],
    ]),
  )
})

test('the turn is the tenant’s that was served longest ago, not the one that runs least (B11)', async () => {
  const queue = await roundRobin()
  await queue.enqueueMany(20, { tenant: 'short' })
  await queue.enqueueMany(10, { tenant: 'long' })
  const served: string[] = []
  for (let n = 0; n < 12; n++) {
    const claim = await queue.claim(1)
    served.push(...claim.tenants)
    if (claim.tenants[0] === 'short') await queue.settle(claim)
  }
  expect(countTenants(served)).toEqual(
    new Map([
      ['long', 6],
      ['short', 6],
    ]),
  )
})

test('tenants without work are never in the way, whether they were ever served or not', async () => {
  const queue = await roundRobin()
  await database.query(
    `insert into :schema.tenant_schedule (queue, tenant, last_served_at) select $1, 'idle' || n, '-infinity' from generate_series(1, 50) as n`,
    [queue.name],
  )
  const ids = await queue.enqueueMany(3, { tenant: 'busy' })
  expect((await queue.claim(5)).ids).toEqual(ids)
})

test('it knows no weights', async () => {
  const queue = await roundRobin()
  await database.admin.configureTenant(queue.name, 'a', { weight: 1_000 })
  for (const tenant of ['a', 'b']) await queue.enqueueMany(10, { tenant })
  expect(countTenants((await queue.claim(10)).tenants)).toEqual(
    new Map([
      ['a', 5],
      ['b', 5],
    ]),
  )
})

test('its turns are strict although several workers claim at once', async () => {
  const { name } = await roundRobin()
  const tenants = ['a', 'b', 'c', 'd']
  for (const tenant of tenants) await database.queue(name).enqueueMany(40, { tenant })
  const work = async () => {
    await using open = openStore(database.schema)
    const queue = new TestQueue(open.store, name)
    for (let n = 0; n < 25; n++) await queue.claim(1)
  }
  await Promise.all([work(), work(), work(), work()])
  const order = await database.query<{ tenant: string }>(
    `select tenant from :schema.job where queue = $1 and state = 'running' order by claimed_at`,
    [name],
  )
  expect(order).toHaveLength(100)
  for (let turn = 0; turn < 25; turn++) {
    const round = order.slice(4 * turn, 4 * turn + 4).map(({ tenant }) => tenant)
    expect(round.sort()).toEqual(tenants)
  }
})
