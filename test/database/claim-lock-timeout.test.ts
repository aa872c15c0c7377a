import { afterEach, beforeAll, expect, test } from 'vitest'
import { classify } from '../../src/driver/pg-errors.js'
import { openStore, type Session, TestQueue, useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'
import { newJob } from '../support/factory.js'

const database = useSharedDatabase()

/** Three seconds in production, which a test need not wait for. */
beforeAll(async () => {
  const functions = await database.query<{ signature: string }>(
    `select oid::regprocedure::text as signature from pg_proc
     where pronamespace = $1::regnamespace and 'lock_timeout=3s' = any (proconfig)`,
    [database.schema.quoted],
  )
  // Every function that workers call bounds its waits.
  const names = functions.map(({ signature }) => /(\w+)\(/.exec(signature)?.[1]).sort()
  expect(names).toEqual(
    expect.arrayContaining([
      'claim_v1',
      'claimed_v1',
      'complete_v1',
      'extend_v1',
      'finalize_v1',
      'reclaim_v1',
      'requeue_v1',
    ]),
  )
  for (const { signature } of functions) await database.query(`alter function ${signature} set lock_timeout = '150ms'`)
})

let operator: Session | undefined

afterEach(async () => {
  await operator?.run('rollback')
  operator = undefined
})

async function lockTable(table: string): Promise<void> {
  operator = await database.session()
  await operator.run('begin')
  await operator.run(`lock table :schema.${table} in access exclusive mode`)
}

function waiting(): Promise<number> {
  return database.value(
    `select count(*)::int from pg_locks where not granted and relation in
       (select oid from pg_class where relnamespace = $1::regnamespace)`,
    [database.schema.quoted],
  )
}

test.each(['job', 'ring', 'lease', 'queue', 'tenant', 'signal'])(
  'a claim that meets a lock on the table %s fails in time, may be tried again, and leaves nobody waiting',
  async (table) => {
    const queue = database.queue()
    await database.admin.configureTenant(queue.name, 'acme', { weight: 2 })
    const ids = await queue.enqueueMany(3)
    await lockTable(table)
    const error = await databaseErrorOf(queue.claim(5))
    expect(error.code).toBe('55P03')
    expect(classify(error)).toBe('retryable')
    expect(await waiting()).toBe(0)
    await operator?.run('rollback')
    expect((await queue.claim(5)).ids).toEqual(ids)
    await expectSound(database)
  },
)

test('many claims that meet the lock at once all fail in time, one after the other or together, and none is left waiting', async () => {
  const { name } = database.queue()
  const ids = await database.queue(name).enqueueMany(20)
  await lockTable('job')
  const claims = Array.from({ length: 8 }, async () => {
    await using open = openStore(database.schema)
    const queue = new TestQueue(open.store, name)
    return databaseErrorOf(queue.claim(2))
  })
  expect(new Set((await Promise.all(claims)).map(({ code }) => code))).toEqual(new Set(['55P03']))
  expect(await waiting()).toBe(0)
  await operator?.run('rollback')
  expect((await database.queue(name).claim(50)).ids).toEqual(ids)
})

test('a claim whose queue is held by a claim that hangs fails in time', async () => {
  const queue = database.queue()
  await queue.enqueueMany(4)
  const hanging = await database.session()
  await hanging.run('begin isolation level read committed')
  expect(await hanging.claim(queue.name, 1)).toHaveLength(1)
  expect(await databaseErrorOf(queue.claim(1))).toMatchObject({ code: '55P03' })
  await hanging.run('rollback')
  expect((await queue.claim(5)).ids).toHaveLength(4)
})

test('settling, extending and reclaiming fail in time too, and change nothing', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(2)
  const claim = await queue.claim(2)
  await lockTable('job')
  expect(await databaseErrorOf(queue.settle(claim))).toMatchObject({ code: '55P03' })
  expect(await databaseErrorOf(queue.settle(claim, { type: 'release' }))).toMatchObject({ code: '55P03' })
  expect(await databaseErrorOf(queue.settle(claim, { type: 'cancel', reason: 'x' }))).toMatchObject({ code: '55P03' })
  await operator?.run('rollback')
  await lockTable('lease')
  expect(await databaseErrorOf(database.store.extend([claim.leaseId], 60_000))).toMatchObject({ code: '55P03' })
  expect(await databaseErrorOf(database.store.reclaim())).toMatchObject({ code: '55P03' })
  await operator?.run('rollback')
  expect((await queue.settle(claim)).sort()).toEqual(ids.sort())
})

test('an enqueue waits as long as the caller’s own session lets it, since it is the caller’s transaction', async () => {
  const queue = database.queue()
  await lockTable('job')
  const writer = await database.session()
  await writer.run(`set lock_timeout = '50ms'`)
  await writer.run('begin')
  const refused = database.store.enqueue([newJob({ queue: queue.name })], writer.client)
  expect(await databaseErrorOf(refused)).toMatchObject({ code: '55P03' })
  await writer.run('rollback')
})
