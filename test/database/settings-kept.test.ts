import { expect, test } from 'vitest'
import { Tenantry } from '../../src/tenantry.js'
import { useSharedDatabase } from '../support/claims.js'
import { uniqueName } from '../support/factory.js'

const database = useSharedDatabase()

function client(): Tenantry {
  const { connectionString, schema } = database.schema
  return new Tenantry({ connectionString, schema })
}

const QUEUE_DEFAULTS = {
  strategy: 'fair',
  history: 'keep',
  charge: 'jobs',
  concurrency: null,
  rate: null,
  quota: null,
  tenantConcurrency: null,
  tenantRate: null,
  tenantQuota: null,
  keyConcurrency: 1,
  keyRate: null,
  objective: null,
  pausedAt: null,
}

test('what is set of a queue is told, what is not named stays, and null restores the default (B13)', async () => {
  await using tenantry = client()
  const queue = uniqueName('queue')
  expect(await tenantry.configureQueue(queue, {})).toEqual(QUEUE_DEFAULTS)
  const settings = {
    history: 'none',
    charge: 'time',
    concurrency: 0,
    rate: { limit: 100, perMs: 60_000, burst: 7 },
    quota: 0,
    tenantConcurrency: 1_000_000,
    tenantRate: { limit: 1_000_000, perMs: 1_000, burst: 1_000_000 },
    tenantQuota: 1_000_000_000,
    keyConcurrency: 3,
    keyRate: { limit: 1, perMs: 3_600_000, burst: 1 },
    objective: { waitMs: 2_000, share: 0.95 },
  } as const
  expect(await tenantry.configureQueue(queue, settings)).toEqual({ ...QUEUE_DEFAULTS, ...settings })
  for (const name of Object.keys(settings) as (keyof typeof settings)[]) {
    const { [name]: _, ...others } = { ...QUEUE_DEFAULTS, ...settings }
    expect(await tenantry.configureQueue(queue, { [name]: undefined })).toEqual({ ...QUEUE_DEFAULTS, ...settings })
    expect(await tenantry.configureQueue(queue, { [name]: null })).toEqual({ ...others, [name]: QUEUE_DEFAULTS[name] })
    await tenantry.configureQueue(queue, { [name]: settings[name] })
  }
})

test('what is set of tenants, groups, kinds and keys is told, and back at the defaults they leave no row (B13)', async () => {
  await using tenantry = client()
  const queue = uniqueName('queue')
  const rate = { limit: 5, perMs: 1_000, burst: 9 }
  const objective = { waitMs: 86_400_000, share: 0.9999 }
  const tenant = { weight: 0.001, group: 'g', concurrency: 0, rate, quota: 3, objective }
  expect(await tenantry.configureTenant(queue, 'a', tenant)).toEqual({ ...tenant, pausedAt: null })
  expect(await tenantry.configureGroup(queue, 'g', { weight: 1_000, objective })).toEqual({ weight: 1_000, objective })
  expect(await tenantry.configureKind(queue, 'k', { concurrency: 4, rate })).toEqual({
    concurrency: 4,
    rate,
    pausedAt: null,
  })
  expect(await tenantry.configureKey(queue, 'y', { concurrency: 4, rate })).toEqual({ concurrency: 4, rate })
  expect(await tenantry.configureTenant(queue, 'a', { weight: 2 })).toEqual({ ...tenant, weight: 2, pausedAt: null })

  await tenantry.configureTenant(queue, 'a', {
    weight: null,
    group: null,
    concurrency: null,
    rate: null,
    quota: null,
    objective: null,
  })
  await tenantry.configureGroup(queue, 'g', { weight: null, objective: null })
  await tenantry.configureKind(queue, 'k', { concurrency: null, rate: null })
  await tenantry.configureKey(queue, 'y', { concurrency: null, rate: null })
  for (const table of ['tenant', 'tenant_group', 'kind', 'key']) {
    const rows = await database.value<number>(`select count(*)::int from :schema.${table} where queue = $1`, [queue])
    expect(rows, table).toBe(0)
  }
})

test('a rate without a burst lets one second’s worth start at once, and at least one', async () => {
  await using tenantry = client()
  const burstOf = async (limit: number, perMs: number) =>
    (await tenantry.configureKey('mail', 'y', { rate: { limit, perMs } })).rate?.burst
  expect(await burstOf(10, 1_000)).toBe(10)
  expect(await burstOf(2.5, 1_000)).toBe(3)
  expect(await burstOf(1, 60_000)).toBe(1)
})

test.each([
  [
    { limit: 10, perMs: 1_000 },
    { limit: 10, perMs: 1_000 },
  ],
  [
    { limit: 100, perMs: 60_000 },
    { limit: 100, perMs: 60_000 },
  ],
  [
    { limit: 5, perMs: 10_000 },
    { limit: 30, perMs: 60_000 },
  ],
  [
    { limit: 1, perMs: 86_400_000 },
    { limit: 1, perMs: 86_400_000 },
  ],
  [
    { limit: 1, perMs: 7_000 },
    { limit: 1 / 7, perMs: 1_000 },
  ],
])('the rate %j is told as %j, and setting that changes nothing', async (given, told) => {
  await using tenantry = client()
  const { rate } = await tenantry.configureKind('mail', 'told', { rate: { ...given, burst: 2 } })
  expect(rate).toMatchObject({ perMs: told.perMs, burst: 2 })
  expect(rate?.limit).toBeCloseTo(told.limit, 12)
  expect((await tenantry.configureKind('mail', 'told', { rate })).rate).toEqual(rate)
})

test('settings changed in a transaction that stays open hold up neither claims nor settings of others (B16)', async () => {
  const queue = database.queue()
  await queue.enqueueMany(20, { tenant: 'a' })
  await queue.enqueueMany(20, { tenant: 'b' })
  await queue.claim(2)
  await database.admin.configureTenant(queue.name, 'first', { concurrency: 1 })
  const session = await database.session()
  await session.run('begin')
  for (let n = 0; n < 1_000; n++) {
    await session.run('select :schema.configure_tenant($1, $2, $3)', [queue.name, `t${n}`, '{"concurrency": 0}'])
  }
  await session.run('select :schema.configure_tenant($1, $2, $3)', [queue.name, 'a', '{"concurrency": 0}'])
  await session.run('select :schema.pause($1, $2)', [queue.name, '{"kind": "other"}'])
  const claim = await queue.claim(4)
  expect(new Set(claim.tenants)).toEqual(new Set(['a', 'b']))
  await queue.settle(claim)
  await database.admin.configureTenant(queue.name, 'b', { weight: 2 })
  await session.run('commit')
  expect(new Set((await queue.claim(4)).tenants)).toEqual(new Set(['b']))
})

test('two that change one tenant at once both have their way', async () => {
  const queue = uniqueName('queue')
  await Promise.all([
    database.admin.configureTenant(queue, 'a', { weight: 5 }),
    database.admin.configureTenant(queue, 'a', { quota: 7 }),
    database.admin.configureTenant(queue, 'a', { concurrency: 3 }),
  ])
  expect(await database.admin.configureTenant(queue, 'a', {})).toMatchObject({ weight: 5, quota: 7, concurrency: 3 })
})

test('the removal of a tenant’s limit acts at the next claim, while jobs run (B16)', async () => {
  const queue = database.queue()
  await database.admin.configureTenant(queue.name, 'a', { concurrency: 2 })
  await queue.enqueueMany(20, { tenant: 'a' })
  const first = await queue.claim(10)
  expect(first.jobs).toHaveLength(2)
  expect((await queue.claim(10)).jobs).toHaveLength(0)
  await database.admin.configureTenant(queue.name, 'a', { concurrency: null })
  expect((await queue.claim(10)).jobs).toHaveLength(10)
  expect(await queue.settle(first)).toHaveLength(2)
})
