import pg from 'pg'
import { expect, test } from 'vitest'
import { ConfigurationError } from '../../src/errors.js'
import { defineJob } from '../../src/job/define-job.js'
import { Tenantry } from '../../src/tenantry.js'
import { useSharedDatabase } from '../support/claims.js'
import { newJob, newJobs } from '../support/factory.js'

const database = useSharedDatabase()

async function begin() {
  const client = await database.schema.connect()
  await client.query('begin')
  return client
}

test('a job exists for claims once the caller’s transaction has committed, and not before', async () => {
  const queue = database.queue()
  const client = await begin()
  const ids = await database.store.enqueue(newJobs(2, { queue: queue.name }), client)
  expect(ids).toHaveLength(2)
  expect((await queue.claim(5)).jobs).toEqual([])
  expect(await database.store.job(ids[0] ?? '')).toBeUndefined()
  await client.query('commit')
  expect((await queue.claim(5)).ids).toEqual(ids)
})

test('a job of a transaction that was rolled back never existed', async () => {
  const queue = database.queue()
  const client = await begin()
  await database.store.enqueue([newJob({ queue: queue.name })], client)
  await client.query('rollback')
  expect((await queue.claim(5)).jobs).toEqual([])
})

test('a job that was enqueued after a savepoint goes with the rollback to it, those before stay', async () => {
  const queue = database.queue()
  const client = await begin()
  const kept = await database.store.enqueue([newJob({ queue: queue.name, tenant: 'kept' })], client)
  await client.query('savepoint attempt')
  await database.store.enqueue([newJob({ queue: queue.name, tenant: 'gone' })], client)
  await client.query('rollback to attempt')
  await client.query('commit')
  expect((await queue.claim(5)).ids).toEqual(kept)
})

test('a connection that is lost takes its uncommitted jobs with it', async () => {
  const queue = database.queue()
  const client = await begin()
  await database.store.enqueue([newJob({ queue: queue.name })], client)
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  await database.query('select pg_terminate_backend($1, 10000)', [rows[0]?.pid])
  expect((await queue.claim(5)).jobs).toEqual([])
})

test('thousands of jobs are all part of the caller’s transaction, though they take several statements', async () => {
  const queue = database.queue()
  const client = await begin()
  const ids = await database.store.enqueue(newJobs(10_001, { queue: queue.name }), client)
  expect(new Set(ids).size).toBe(10_001)
  expect((await queue.claim(5)).jobs).toEqual([])
  await client.query('rollback')
  expect(await database.value('select count(*)::int from :schema.job where queue = $1', [queue.name])).toBe(0)
})

test('a payload that is refused leaves the caller’s transaction usable, since no SQL was sent (B52)', async () => {
  const queue = database.queue()
  const client = await begin()
  const definition = defineJob({ kind: 'send-invoice', queue: queue.name })
  await using tenantry = new Tenantry(optionsOf())
  const enqueue = tenantry.enqueue(definition, { amount: 10n }, { tenant: 'acme', transaction: client })
  await expect(enqueue).rejects.toThrow('$.amount')
  const id = await tenantry.enqueue(definition, { amount: 10 }, { tenant: 'acme', transaction: client })
  await client.query('commit')
  expect((await queue.claim(5)).ids).toEqual([id])
})

test('a PoolClient and a wrapper with nothing but query will do as transaction', async () => {
  const queue = database.queue()
  const client = await database.schema.pool.connect()
  const wrapper = { query: (config: pg.QueryConfig) => client.query(config) }
  const ids = [
    ...(await database.store.enqueue([newJob({ queue: queue.name })], client)),
    ...(await database.store.enqueue([newJob({ queue: queue.name })], wrapper)),
  ]
  client.release()
  expect((await queue.claim(5)).ids).toEqual(ids)
})

test('what is no open transaction is refused, since the job would exist at once whatever became of it', async () => {
  const queue = database.queue()
  await using tenantry = new Tenantry(optionsOf())
  const definition = defineJob({ kind: 'send-invoice', queue: queue.name })
  const client = await begin()
  await client.query('rollback')
  const refused: readonly (readonly [unknown, string])[] = [
    [database.schema.pool, 'got a pool; use a client from pool.connect() after "begin"'],
    [client, 'got one that is in none; use it after "begin"'],
    [{}, 'expected transaction to be a client with an open transaction'],
    [null, 'expected transaction to be a client with an open transaction'],
  ]
  for (const [value, message] of refused) {
    const transaction = value as pg.Client
    const one = tenantry.enqueue(definition, {}, { tenant: 'acme', transaction })
    await expect(one).rejects.toThrow(message)
    await expect(one).rejects.toBeInstanceOf(ConfigurationError)
    const many = tenantry.enqueueMany([{ definition, payload: {}, tenant: 'acme' }], { transaction })
    await expect(many).rejects.toThrow(message)
  }
  await client.query('begin')
  const id = await tenantry.enqueue(definition, {}, { tenant: 'acme', transaction: client })
  await client.query('commit')
  expect((await queue.claim(5)).ids).toEqual([id])
})

test('type parsers that the application has replaced globally change nothing (B61)', async () => {
  const queue = database.queue()
  const { builtins } = pg.types
  const replaced = [builtins.INT8, builtins.FLOAT8, builtins.JSON, builtins.JSONB, builtins.TEXT, builtins.BOOL, 1_016]
  const parsers = replaced.map((oid) => pg.types.getTypeParser(oid))
  try {
    for (const oid of replaced) pg.types.setTypeParser(oid, () => 'replaced')
    const client = await begin()
    const [id] = await database.store.enqueue([newJob({ queue: queue.name, payload: '{"a":[1]}' })], client)
    expect(id).toMatch(/^\d+$/)
    await client.query('commit')
    const claim = await queue.claim(1)
    expect(claim.jobs).toMatchObject([{ id, payload: { a: [1] }, attempt: 1, priority: 0 }])
    const settling = await begin()
    expect(await database.store.completeIn(settling, queue.name, id ?? '', claim.leaseId)).toBe(true)
    await settling.query('commit')
  } finally {
    for (const [index, oid] of replaced.entries())
      pg.types.setTypeParser(oid, parsers[index] as (text: string) => unknown)
  }
})

function optionsOf() {
  return { connectionString: database.schema.connectionString, schema: database.schema.schema }
}
