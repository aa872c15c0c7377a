import { expect, test } from 'vitest'
import { QuotaExceededError } from '../../src/errors.js'
import { defineJob } from '../../src/job/define-job.js'
import { useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf } from '../support/expect.js'
import { createTenantry } from '../support/tenantry.js'

const database = useSharedDatabase()

const anyJob = defineJob({ kind: 'send-invoice' })

async function refusal(enqueued: Promise<unknown>): Promise<QuotaExceededError> {
  const error = await enqueued.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof QuotaExceededError) return error
  throw new Error(`expected a QuotaExceededError, got ${String(error)}`)
}

test('a queue takes jobs up to its quota and refuses more with all that a producer needs to know (B13)', async () => {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { quota: 3 })
  await queue.enqueueMany(2, { tenant: 'a' })
  await queue.enqueue({ tenant: 'b', delayMs: 3_600_000 })
  const error = await refusal(queue.enqueue({ tenant: 'c' }))
  expect(error).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    name: 'QuotaExceededError',
    scope: 'queue',
    queue: queue.name,
    tenant: undefined,
    quota: 3,
    queued: 3,
  })
  expect(error.message).toContain(`expected at most 3 jobs of queue "${queue.name}" to wait, got 3 and 1 more`)
  expect(error.retryAfterMs).toBeGreaterThanOrEqual(1_000)
  expect(error.retryAfterMs).toBeLessThanOrEqual(300_000)
})

test('what starts or is cancelled makes room, and what runs does not count', async () => {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { quota: 3 })
  const [first = ''] = await queue.enqueueMany(3)
  await refusal(queue.enqueue({}))
  await queue.store.cancel(first, 'test')
  await queue.enqueue({})
  await refusal(queue.enqueue({}))
  const claim = await queue.claim(2)
  await queue.enqueueMany(2)
  const { retryAfterMs } = await refusal(queue.enqueue({}))
  expect(retryAfterMs).toBe(1_000) // two that have just been started leave at once, as far as can be told
  await queue.settle(claim)
})

test('a batch is stored as a whole or not at all', async () => {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { quota: 10 })
  await queue.enqueueMany(8)
  expect(await refusal(queue.enqueueMany(3))).toMatchObject({ queued: 8, quota: 10 })
  await queue.enqueueMany(2)
  const { retryAfterMs } = await refusal(queue.enqueueMany(11))
  expect(retryAfterMs, 'more than there is ever room for').toBe(300_000)
  expect(await queue.claimAll(20)).toHaveLength(10)
})

test('tenants have the quota of their own or else that of the queue, and the strategy does not matter', async () => {
  for (const strategy of ['fair', 'fifo', 'round-robin'] as const) {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy, tenantQuota: 2, quota: 20 })
    await database.admin.configureTenant(queue.name, 'big', { quota: 5 })
    await queue.enqueueMany(2, { tenant: 'small' })
    await queue.enqueueMany(5, { tenant: 'big' })
    const mixed = [{ tenant: 'other' }, { tenant: 'small' }]
    expect(await refusal(queue.enqueue(...mixed))).toMatchObject({
      scope: 'tenant',
      tenant: 'small',
      quota: 2,
      queued: 2,
    })
    expect(await refusal(queue.enqueue({ tenant: 'big' }))).toMatchObject({ tenant: 'big', quota: 5, queued: 5 })
    await queue.enqueue({ tenant: 'other' })
    await database.admin.configureTenant(queue.name, 'big', { quota: null })
    expect(await refusal(queue.enqueue({ tenant: 'big' }))).toMatchObject({ tenant: 'big', quota: 2, queued: 3 })
    await database.admin.configureQueue(queue.name, { tenantQuota: null })
    await queue.enqueueMany(12, { tenant: 'big' })
    expect(await refusal(queue.enqueue({ tenant: 'big' }))).toMatchObject({ scope: 'queue', quota: 20 })
  }
})

test('the quota of one tenant alone is enforced, and jobs that wait for their key count', async () => {
  const queue = database.queue()
  await database.admin.configureTenant(queue.name, 'a', { quota: 3 })
  await queue.enqueueMany(1, { tenant: 'a', key: 'k' })
  await queue.enqueueMany(1, { tenant: 'a', kind: 'another', key: 'k' })
  await queue.enqueueMany(1, { tenant: 'a', kind: 'third', delayMs: 60_000 })
  expect(await refusal(queue.enqueue({ tenant: 'a', key: 'k' }))).toMatchObject({ quota: 3, queued: 3 })
  await queue.enqueueMany(10, { tenant: 'b' })
})

test('a quota of 0 closes a queue for enqueues, and what waits, is retried and given back goes on', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2)
  await database.admin.configureQueue(queue.name, { quota: 0 })
  expect(await refusal(queue.enqueue({}))).toMatchObject({ quota: 0, queued: 1, retryAfterMs: 300_000 })
  const claim = await queue.claim(2)
  await queue.settle(claim, { type: 'release' })
  expect(await queue.claimAll(5)).toHaveLength(2)
  await database.admin.configureQueue(queue.name, { quota: null })
  await queue.enqueue({})
})

test('another queue without a quota is not looked at', async () => {
  const [bounded, free] = [database.queue(), database.queue()]
  await database.admin.configureQueue(bounded.name, { quota: 0 })
  await free.enqueueMany(50)
  await refusal(free.store.enqueue([await oneOf(free.name), await oneOf(bounded.name)]))
  expect(await free.claimAll(100)).toHaveLength(50)
})

async function oneOf(queue: string) {
  return { queue, kind: 'send-invoice', tenant: 'acme', payload: '{}', priority: 0, maxAttempts: 5 }
}

test('the client rejects with the typed error, also inside the caller’s transaction, which has failed then', async () => {
  const { tenantry, connect, query, quoted } = await createTenantry()
  await tenantry.configureQueue('default', { quota: 1 })
  await tenantry.enqueue(anyJob, 1, { tenant: 'a' })
  await expect(tenantry.enqueue(anyJob, 1, { tenant: 'a' })).rejects.toThrow(QuotaExceededError)
  const job = { definition: anyJob, payload: 1, tenant: 'a' }
  await expect(tenantry.enqueueMany([job, job])).rejects.toThrow(QuotaExceededError)
  const client = await connect()
  await client.query('begin')
  await expect(tenantry.enqueue(anyJob, 1, { tenant: 'a', transaction: client })).rejects.toMatchObject({
    code: 'QUOTA_EXCEEDED',
    quota: 1,
  })
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
  await client.query('rollback')
  expect(await query(`select id from ${quoted}.job`)).toHaveLength(1)
})

test('an enqueue in SQL is refused with a code and particulars of its own', async () => {
  const queue = database.queue()
  await database.admin.configureTenant(queue.name, 'a', { quota: 0 })
  const error = await databaseErrorOf(
    database.query(`select :schema.enqueue('send-invoice', '{}', 'a', jsonb_build_object('queue', $1::text))`, [
      queue.name,
    ]),
  )
  const { code, detail } = error as unknown as { readonly code: string; readonly detail: string }
  expect(code).toBe('TQ001')
  expect(JSON.parse(detail)).toEqual({
    scope: 'tenant',
    queue: queue.name,
    tenant: 'a',
    quota: 0,
    queued: 0,
    retry_after_ms: 300_000,
  })
})

test('a role that may only enqueue is held to quotas too, though it may not read what is counted', async () => {
  const { schema, quoted } = database.schema
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { quota: 1 })
  const role = `enqueuer_${schema}`
  const session = await database.session()
  const enqueue = () =>
    session.run(`select :schema.enqueue('send-invoice', '{}', 'a', jsonb_build_object('queue', $1::text))`, [
      queue.name,
    ])
  await session.run(`create role ${role}`)
  try {
    await session.run(`grant usage on schema ${quoted} to ${role}`)
    await session.run(
      `grant insert, select (id, queue, kind, tenant, key, state, order_at) on :schema.job to ${role};
       grant insert on :schema.signal, :schema.notice to ${role};
       grant select on :schema.queue, :schema.tenant, :schema.ring, :schema.walk, :schema.waiter to ${role}`,
    )
    await session.run(`set role ${role}`)
    await enqueue()
    expect(await databaseErrorOf(enqueue())).toMatchObject({ code: 'TQ001' })
    expect(await databaseErrorOf(session.run('select max_attempts from :schema.job'))).toMatchObject({ code: '42501' })
  } finally {
    await session.run(`reset role; drop owned by ${role}; drop role ${role}`)
  }
})
