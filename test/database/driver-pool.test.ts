import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { classify } from '../../src/driver/pg-errors.js'
import { DatabasePool, type DatabasePoolOptions } from '../../src/driver/pool.js'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { silentLogger } from '../../src/logger.js'
import { createSchema, type TestSchema } from '../support/database.js'
import { createRole } from '../support/role.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'

function poolFor(options: Partial<DatabasePoolOptions> = {}): DatabasePool {
  const pool = new DatabasePool({ client: { connectionString: inject('databaseUrl') }, ...options })
  onTestFinished(() => pool.end())
  return pool
}

function applicationPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: inject('databaseUrl'), ...options })
  onTestFinished(() => pool.end())
  return pool
}

async function schemaWithThings(): Promise<TestSchema & { readonly things: () => Promise<number[]> }> {
  const created = await createSchema({ empty: true })
  await created.query(`create table ${created.quoted}.thing (id int)`)
  const read = `select id from ${created.quoted}.thing order by id`
  const things = async () => (await created.query<{ id: number }>(read)).map(({ id }) => id)
  return { ...created, things }
}

async function pidOf(pool: DatabasePool): Promise<string> {
  const rows = await pool.query({ text: 'select pg_backend_pid() as pid' })
  return rows.map(({ pid }) => pid ?? '').join()
}

test('a query answers with text, and an error of the server keeps the session', async () => {
  const pool = poolFor({ max: 1 })
  const pid = await pidOf(pool)
  await expect(pool.query({ text: 'select 1 / 0' })).rejects.toMatchObject({ code: '22012' })
  expect(await pidOf(pool)).toBe(pid)
})

test('a transaction is committed when its function resolves, and rolled back when it rejects', async () => {
  const { quoted, things } = await schemaWithThings()
  const pool = poolFor({ max: 1 })
  const pid = await pidOf(pool)
  expect(
    await pool.transaction(async (client) => {
      await client.query(`insert into ${quoted}.thing values (1)`)
      return 'result'
    }),
  ).toBe('result')
  const failed = pool.transaction(async (client) => {
    await client.query(`insert into ${quoted}.thing values (2)`)
    throw new Error('a handler failed')
  })
  await expect(failed).rejects.toThrow('a handler failed')
  expect(await things()).toEqual([1])
  expect(await pidOf(pool)).toBe(pid)
})

test("a transaction's client is node-postgres's own, with the types that the application expects", async () => {
  const rows = await poolFor().transaction(
    async (client) => (await client.query('select 1::int as n, now() as t')).rows,
  )
  expect(rows).toEqual([{ n: 1, t: expect.any(Date) }])
})

test('a transaction is read committed whatever the default is (B78)', async () => {
  const created = await createSchema({ empty: true })
  const { connectionString } = await createRole(created, "set default_transaction_isolation = 'serializable'")
  const pool = poolFor({ client: { connectionString } })
  const level = await pool.transaction(async (client) => (await client.query('show transaction_isolation')).rows)
  expect(level).toEqual([{ transaction_isolation: 'read committed' }])
})

test('a transaction in which an error was swallowed is reported as rolled back, never as committed', async () => {
  const { quoted, things } = await schemaWithThings()
  const swallowed = poolFor().transaction(async (client) => {
    await client.query(`insert into ${quoted}.thing values (1)`)
    await client.query('select 1 / 0').catch(() => {})
  })
  await expect(swallowed).rejects.toThrow('the transaction was rolled back')
  expect(await things()).toEqual([])
})

test('a session that dies inside a transaction rejects it, ends nothing else and is not used again (B75)', async () => {
  const { quoted, query, things } = await schemaWithThings()
  const pool = poolFor({ max: 1 })
  const lost = pool.transaction(async (client) => {
    await client.query(`insert into ${quoted}.thing values (1)`)
    const { rows } = await client.query('select pg_backend_pid() as pid')
    await query('select pg_terminate_backend($1, 30000)', [rows[0].pid])
    await client.query(`insert into ${quoted}.thing values (2)`)
  })
  const error = await lost.catch((reason: unknown) => reason)
  expect(classify(error)).toBe('unreachable')
  expect(await things()).toEqual([])
  expect(await pool.query({ text: 'select 1 as n' })).toEqual([{ n: '1' }])
})

test('sessions that die while idle do not end the process, and are replaced (B75)', async () => {
  const { query } = await createSchema({ empty: true })
  const pool = poolFor({ max: 1 })
  const pid = await pidOf(pool)
  await query('select pg_terminate_backend($1, 30000)', [pid])
  expect(await until(() => pidOf(pool).catch(() => ''), { until: 'a query succeeds again' })).not.toBe(pid)
})

test('a restart of the server is survived (B75)', async () => {
  await using server = await EmbeddedServer.start({ durable: false })
  const pool = poolFor({ client: { connectionString: server.connectionString } })
  const pid = await pidOf(pool)
  await server.restart('immediate')
  expect(await until(() => pidOf(pool).catch(() => ''), { until: 'a query succeeds again' })).not.toBe(pid)
  await pool.end()
})

test('a reply that never comes rejects at the deadline, and the connection is not used again', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const pool = poolFor({ client: { connectionString: proxy.url }, max: 1, queryDeadlineMs: 300 })
  const pid = await pidOf(pool)
  proxy.pause()
  const error = await pool.query({ text: 'select 1' }).catch((reason: unknown) => reason)
  expect(classify(error)).toBe('retryable')
  proxy.cut()
  expect(await until(() => pidOf(pool).catch(() => ''), { until: 'a query succeeds again' })).not.toBe(pid)
})

test('a client that the application gave back inside a transaction is closed and not used', async () => {
  const { quoted, things } = await schemaWithThings()
  const shared = applicationPool({ max: 1 })
  const careless = await shared.connect()
  await careless.query('begin')
  await careless.query(`insert into ${quoted}.thing values (1)`)
  careless.release()
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) }
  const pool = poolFor({ pool: shared, logger })
  await pool.query({ text: `insert into ${quoted}.thing values (2)` })
  expect(await things()).toEqual([2])
  expect(warnings).toHaveLength(1)
})

test('a transaction that its own function ended with a new one is not left open in the pool', async () => {
  const { quoted, things } = await schemaWithThings()
  const pool = poolFor({ max: 1 })
  await pool.session(async (client) => {
    await client.query('begin')
    await client.query(`insert into ${quoted}.thing values (1)`)
  })
  await pool.query({ text: `insert into ${quoted}.thing values (2)` })
  expect(await things()).toEqual([2])
})

test('an end does not wait for ever for a transaction that never ends, and rolls it back', async () => {
  const { quoted, query, things } = await schemaWithThings()
  const pool = poolFor({ endWaitMs: 50 })
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let begun = (_pid: number) => {}
  const pid = new Promise<number>((resolve) => {
    begun = resolve
  })
  const stuck = pool.transaction(async (client) => {
    await client.query(`insert into ${quoted}.thing values (1)`)
    begun((await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid ?? 0)
    await released
  })
  const session = await pid
  await pool.end()
  await until(async () => (await query('select from pg_stat_activity where pid = $1', [session])).length === 0, {
    until: 'the session is gone',
  })
  release()
  expect(classify(await stuck.catch((reason: unknown) => reason))).toBe('unreachable')
  expect(await things()).toEqual([])
})

test('an end waits for the transaction that is under way', async () => {
  const { quoted, things } = await schemaWithThings()
  const pool = poolFor()
  let ended: Promise<void> | undefined
  await pool.transaction(async (client) => {
    ended = pool.end()
    await client.query(`insert into ${quoted}.thing values (1)`)
  })
  await ended
  expect(await things()).toEqual([1])
})

test("an application's pool is used and never ended (B86)", async () => {
  const shared = applicationPool()
  const pool = poolFor({ pool: shared })
  expect(await pool.query({ text: 'select 1 as n' })).toEqual([{ n: '1' }])
  await pool.end()
  await pool.end()
  await expect(pool.query({ text: 'select 1' })).rejects.toThrow('the connections were closed')
  expect((await shared.query('select 1 as n')).rows).toEqual([{ n: 1 }])
  expect(shared.listenerCount('error')).toBe(0)
})

test('statements go on without names where sessions change under us (B73)', async () => {
  const pool = poolFor({ max: 1 })
  const named = { name: 'answer', text: 'select $1::int + 1 as n', values: [1] }
  expect(await pool.query(named)).toEqual([{ n: '2' }])
  await pool.query({ text: 'deallocate all' })
  expect(await pool.query(named)).toEqual([{ n: '2' }])
})

test('a pool whose connections are all in use says so in time, and it is worth another try (B74)', async () => {
  const connectionString = inject('databaseUrl')
  const pool = poolFor({ client: { connectionString, connectionTimeoutMillis: 200 }, max: 1 })
  const error = await pool.transaction(() => pool.query({ text: 'select 1' })).catch((reason: unknown) => reason)
  expect(classify(error)).toBe('retryable')
  expect(await pool.query({ text: 'select 1 as n' })).toEqual([{ n: '1' }])
})
