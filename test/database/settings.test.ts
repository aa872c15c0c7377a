import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { Tenantry } from '../../src/tenantry.js'
import { useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'

const database = useSharedDatabase()

test('what is not named stays as it is, and a queue without settings has the defaults (B13)', async () => {
  const { admin } = database
  const { name } = database.queue()
  expect(await admin.configureQueue(name, {})).toMatchObject({ strategy: 'fair', history: 'keep' })
  expect(await admin.configureQueue(name, { strategy: 'fifo' })).toMatchObject({ strategy: 'fifo', history: 'keep' })
  expect(await admin.configureQueue(name, { history: 'none' })).toMatchObject({ strategy: 'fifo', history: 'none' })
  expect(await admin.configureQueue(name, {})).toMatchObject({ strategy: 'fifo', history: 'none' })
})

test('the tables refuse what the client would have refused', async () => {
  const refused = [
    `insert into :schema.queue (name, strategy) values ('x', 'random')`,
    `insert into :schema.queue (name, history) values ('x', 'some')`,
    `insert into :schema.tenant (queue, tenant, weight) values ('x', 't', 0)`,
    `insert into :schema.tenant (queue, tenant, weight) values ('x', 't', -1)`,
    `insert into :schema.tenant (queue, tenant, weight) values ('x', 't', 'NaN')`,
    `insert into :schema.tenant (queue, tenant, weight) values ('x', 't', 'Infinity')`,
    `insert into :schema.tenant (queue, tenant, weight) values ('x', 't', 1000.1)`,
  ]
  for (const statement of refused) {
    expect(await databaseErrorOf(database.query(statement)), statement).toMatchObject({ code: '23514' })
  }
})

test.each([0, -1, 0.0009, 1_000.1, Number.NaN, Number.POSITIVE_INFINITY, '3'])(
  'a weight of %s is refused with a sentence (B16)',
  async (weight) => {
    const { connectionString, schema } = database.schema
    await using tenantry = new Tenantry({ connectionString, schema })
    const configured = tenantry.configureTenant('default', 'acme', { weight: weight as number })
    await expect(configured).rejects.toThrow('expected weight to be a number from 0.001 to 1000')
  },
)

test('the strategy may change while jobs wait: it acts at the next claim and loses none (B13)', async () => {
  const queue = database.queue()
  const ids: string[] = []
  const claimed: string[] = []
  for (let round = 0; round < 6; round++) {
    const strategy = STRATEGIES[round % 3] as (typeof STRATEGIES)[number]
    await database.admin.configureQueue(queue.name, { strategy })
    const noisy = await queue.enqueueMany(20, { tenant: `noisy-${round}` })
    const [quiet = ''] = await queue.enqueueMany(1, { tenant: `quiet-${round}` })
    ids.push(...noisy, quiet)
    const claim = await queue.claim(6)
    claimed.push(...claim.ids)
    expect(claim.ids.includes(quiet), strategy).toBe(strategy !== 'fifo')
  }
  claimed.push(...(await queue.claimAll(25)).map(({ id }) => id))
  expect(claimed.sort()).toEqual(ids.sort())
  await expectSound(database)
})

test('a queue that becomes fair shares its backlog from the first claim on', async () => {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { strategy: 'fifo' })
  await queue.enqueueMany(200, { tenant: 'noisy' })
  await queue.enqueueMany(5, { tenant: 'quiet' })
  expect(new Set((await queue.claim(20)).tenants)).toEqual(new Set(['noisy']))
  await database.admin.configureQueue(queue.name, { strategy: 'fair' })
  const { tenants } = await queue.claim(12)
  expect(tenants.filter((tenant) => tenant === 'quiet')).toHaveLength(5)
})

test('the settings of one queue do not touch another, and those of a tenant only its queue', async () => {
  const [one, other] = [database.queue(), database.queue()]
  await database.admin.configureTenant(one.name, 'a', { weight: 9 })
  for (const queue of [one, other]) for (const tenant of ['a', 'b']) await queue.enqueueMany(50, { tenant })
  const share = async (queue: typeof one) => {
    const tenants: string[] = []
    for (let n = 0; n < 40; n++) tenants.push(...(await queue.claim(1)).tenants)
    return tenants.filter((tenant) => tenant === 'a').length
  }
  expect(await share(one)).toBeGreaterThanOrEqual(35)
  expect(await share(other)).toBe(20)
})

test.each(['fifo', 'round-robin'] as const)(
  '%s: enqueues leave nothing behind that nobody would ever remove',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    for (let n = 0; n < 30; n++) {
      await queue.enqueue({ tenant: `t${n}` }, { tenant: `t${n}`, delayMs: 1 })
      const claim = await queue.claim(2)
      await queue.settle(claim, n % 2 === 0 ? { type: 'complete' } : { type: 'release' })
    }
    expect(await database.value('select count(*)::int from :schema.signal where queue = $1', [queue.name])).toBe(0)
  },
)

test('fair: signals are used up by the claims that follow, also when they are many', async () => {
  const queue = database.queue()
  await queue.claim(1)
  for (let n = 0; n < 300; n++) await queue.enqueue({ tenant: `t${n % 20}` })
  for (let n = 0; n < 4; n++) await queue.claim(1)
  expect(await database.value('select count(*)::int from :schema.signal where queue = $1', [queue.name])).toBe(0)
  expect(await queue.claimAll(100)).toHaveLength(296)
})

test('maintenance forgets idle tenants, and their pass is of no consequence by then (B100)', async () => {
  const queue = database.queue()
  for (let n = 0; n < 200; n++) await queue.enqueue({ tenant: `t${n}` })
  await queue.claimAll(100)
  await queue.enqueueMany(500, { tenant: 'steady' })
  for (let n = 0; n < 50; n++) await queue.claim(2)
  await database.store.maintain()
  const lanes = await database.value<number>('select count(*)::int from :schema.ring where queue = $1', [queue.name])
  expect(lanes).toBeLessThan(5)
  await queue.enqueueMany(50, { tenant: 't7' })
  const tenants: string[] = []
  for (let n = 0; n < 40; n++) tenants.push(...(await queue.claim(1)).tenants)
  expect(Math.abs(tenants.filter((tenant) => tenant === 't7').length - 20)).toBeLessThanOrEqual(1)
})
