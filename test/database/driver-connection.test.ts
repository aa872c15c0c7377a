import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { Connection, type ConnectionOptions } from '../../src/driver/connection.js'
import { classify } from '../../src/driver/pg-errors.js'
import type { TextRow } from '../../src/driver/statement.js'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { silentLogger } from '../../src/logger.js'
import { createSchema } from '../support/database.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'

function connectTo(url = inject('databaseUrl'), options: Partial<ConnectionOptions> = {}): Connection {
  const connection = new Connection({ client: { connectionString: url }, ...options })
  onTestFinished(() => connection.stop())
  return connection
}

async function pidOf(connection: Connection): Promise<string> {
  const rows = await connection.query({ text: 'select pg_backend_pid() as pid' })
  return rows.map(({ pid }) => pid ?? '').join()
}

/** Another session, which knows when a backend is really gone. */
async function terminate(pid: string): Promise<void> {
  const killer = connectTo()
  await killer.query({ text: 'select pg_terminate_backend($1::int, 30000)', values: [pid] })
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.fail('expected a rejection'),
    (error: unknown) => error,
  )
}

test('every column comes as the text that PostgreSQL sent', async () => {
  const connection = connectTo()
  const text = `select 9007199254740993::bigint as id, 1::int as small, true as flag, '{"a": 1}'::jsonb as json,
    array[1, 2] as list, null as nothing, timestamptz '2024-02-29 12:00:00+00' at time zone 'UTC' as moment`
  expect(await connection.query({ text })).toEqual([
    {
      id: '9007199254740993',
      small: '1',
      flag: 't',
      json: '{"a": 1}',
      list: '{1,2}',
      nothing: null,
      moment: '2024-02-29 12:00:00',
    },
  ])
})

test("an application's own type parsers change nothing, and are not changed (B61)", async () => {
  const oids = [pg.types.builtins.INT8, pg.types.builtins.JSONB, pg.types.builtins.TEXT]
  const before = oids.map((oid) => [oid, pg.types.getTypeParser(oid)] as const)
  onTestFinished(() => {
    for (const [oid, parser] of before) pg.types.setTypeParser(oid, parser)
  })
  for (const oid of oids) pg.types.setTypeParser(oid, () => 'parsed by the application')
  const connection = connectTo()
  const text = `select 9007199254740993::bigint as id, '{}'::jsonb as json, 'x'::text as word`
  expect(await connection.query({ text })).toEqual([{ id: '9007199254740993', json: '{}', word: 'x' }])
  const client = new pg.Client({ connectionString: inject('databaseUrl') })
  await client.connect()
  expect((await client.query('select 1::bigint as id')).rows).toEqual([{ id: 'parsed by the application' }])
  await client.end()
})

test('the second of two pipelined queries sees what the first one committed', async () => {
  const { quoted, query } = await createSchema({ empty: true })
  await query(`create table ${quoted}.thing (id int)`)
  const connection = connectTo()
  const [inserted, read] = await connection.pipeline([
    { name: 'insert_thing', text: `insert into ${quoted}.thing values ($1)`, values: [1] },
    { name: 'read_thing', text: `select id from ${quoted}.thing` },
  ])
  expect(inserted).toEqual({ status: 'fulfilled', value: [] })
  expect(read).toEqual({ status: 'fulfilled', value: [{ id: '1' }] })
})

test('pipelined queries are sent without waiting for replies', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const { quoted, query } = await createSchema({ empty: true })
  await query(`create table ${quoted}.thing (id int)`)
  const connection = connectTo(proxy.url)
  await connection.start()
  proxy.dropReplies()
  const insert = { text: `insert into ${quoted}.thing values ($1)` }
  const running = connection.pipeline([1, 2, 3].map((id) => ({ ...insert, values: [id] })))
  await until(async () => (await query(`select id from ${quoted}.thing`)).length === 3, {
    until: 'all three rows are there although no reply came',
  })
  proxy.cut()
  expect((await running).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
})

test('one failed query of a pipeline leaves the others alone', async () => {
  const connection = connectTo()
  const results = await connection.pipeline([
    { text: 'select 1 as n' },
    { text: 'select 1 / $1::int', values: [0] },
    { text: 'select 3 as n' },
  ])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(results[2]).toEqual({ status: 'fulfilled', value: [{ n: '3' }] })
})

test('a terminated session rejects what is under way, and the next query has a new one (B72, B75)', async () => {
  const connection = connectTo()
  const pid = await pidOf(connection)
  const running = failure(connection.query({ text: 'select pg_sleep(60)' }))
  const watcher = connectTo()
  await until(
    async () =>
      (
        await watcher.query({
          text: "select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'",
          values: [pid],
        })
      ).length > 0,
    { until: 'the query runs' },
  )
  await terminate(pid)
  expect(classify(await running)).toBe('unreachable')
  expect(await pidOf(connection)).not.toBe(pid)
})

test('a session that is terminated while idle is replaced without anybody noticing (B75)', async () => {
  const connection = connectTo()
  const pid = await pidOf(connection)
  await terminate(pid)
  const next = await until(() => pidOf(connection).catch(() => ''), { until: 'a query succeeds again' })
  expect(next).not.toBe(pid)
})

test.each(['fast', 'immediate'] as const)('a %s restart of the server is survived (B75)', async (mode) => {
  await using server = await EmbeddedServer.start({ durable: false })
  const connection = connectTo(server.connectionString)
  const pid = await pidOf(connection)
  const running = failure(connection.query({ text: 'select pg_sleep(60)' }))
  const restarting = server.restart(mode)
  expect(classify(await running)).toBe('unreachable')
  await restarting
  expect(await until(() => pidOf(connection).catch(() => ''), { until: 'a query succeeds again' })).not.toBe(pid)
  await connection.stop()
})

test('a server that is not there rejects, again and again, until it is (B75)', async () => {
  await using server = await EmbeddedServer.start({ durable: false })
  const url = server.connectionString
  const connection = connectTo(url)
  await server.stop()
  expect(classify(await failure(connection.start()))).toBe('unreachable')
  const [first, second] = await connection.pipeline([{ text: 'select 1' }, { text: 'select 2' }])
  expect([first?.status, second?.status]).toEqual(['rejected', 'rejected'])
})

test('a password that is wrong is not worth another try', async () => {
  expect(classify(await failure(connectTo('postgres://nobody_here@127.0.0.1:1/x').start()))).toBe('unreachable')
  const url = new URL(inject('databaseUrl'))
  url.pathname = '/there_is_no_such_database'
  expect(classify(await failure(connectTo(url.href).start()))).toBe('fatal')
})

test('a reply that never comes ends the connection at its deadline, and the next query has a new one', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const connection = connectTo(proxy.url, { queryDeadlineMs: 300 })
  const pid = await pidOf(connection)
  proxy.pause()
  const errors = await Promise.all([
    failure(connection.query({ text: 'select 1' })),
    failure(connection.query({ text: 'select 2' })),
  ])
  expect(errors.map(classify)).not.toContain('fatal')
  proxy.cut()
  expect(await until(() => pidOf(connection).catch(() => ''), { until: 'a query succeeds again' })).not.toBe(pid)
})

test('stop waits for the replies that are still to come, and then refuses', async () => {
  const connection = connectTo()
  const running = connection.query({ text: "select 'done' as word from pg_sleep(0.1)" })
  await connection.stop()
  expect(await running).toEqual([{ word: 'done' }])
  await expect(connection.query({ text: 'select 1' })).rejects.toThrow('the connection was stopped')
  await connection.start()
  expect(await connection.query({ text: 'select 1 as n' })).toEqual([{ n: '1' }])
})

test('stop ends in bounded time on a half-open connection (B86)', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const connection = connectTo(proxy.url)
  await connection.start()
  proxy.pause()
  await connection.stop()
  expect(proxy.connections).toBe(1) // The proxy does not look either: our side has given up on its own.
})

test('a server sees who we are, and no start-up parameter that a pooler would refuse (B73)', async () => {
  const connection = connectTo()
  const [row] = await connection.query({
    text: `select application_name as name, current_setting('statement_timeout') as timeout from pg_stat_activity
      where pid = pg_backend_pid()`,
  })
  expect(row).toEqual({ name: 'tenantry', timeout: '0' })
})

const NAMED = { name: 'read_names', text: 'select count(*) as count from pg_prepared_statements where name = $1' }

test('a named statement is prepared once per session', async () => {
  const connection = connectTo()
  for (const count of ['1', '1', '1']) {
    expect(await connection.query({ ...NAMED, values: [NAMED.name] })).toEqual([{ count }])
  }
})

test('statements go on without names, for good and with one warning, where sessions change under us (B73)', async () => {
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) }
  const connection = connectTo(undefined, { logger })
  const read = () => connection.query({ ...NAMED, values: [NAMED.name] })
  expect(await read()).toEqual([{ count: '1' }])
  // What a pooler's next session looks like: nothing is prepared in it.
  await connection.query({ text: 'deallocate all' })
  expect(await read()).toEqual([{ count: '0' }])
  expect(await read()).toEqual([{ count: '0' }])
  expect(warnings).toEqual([expect.stringContaining('prepared statements do not survive')])
})

test('statements go on without names where somebody else has prepared the same name (B73)', async () => {
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) }
  const connection = connectTo(undefined, { logger })
  await connection.query({ text: `prepare ${NAMED.name} as select 'not ours'` })
  expect(await connection.query({ ...NAMED, values: [NAMED.name] })).toEqual([{ count: '1' }])
  expect(warnings).toHaveLength(1)
})

test('what stands behind a refused statement runs after it, not before it', async () => {
  const { quoted, query } = await createSchema({ empty: true })
  await query(`create table ${quoted}.thing (id int)`)
  const connection = connectTo()
  const insert = { name: 'insert_thing', text: `insert into ${quoted}.thing values ($1)`, values: [1] }
  await connection.query(insert)
  await connection.query({ text: 'deallocate insert_thing' })
  const [, read] = await connection.pipeline([insert, { text: `select count(*) as count from ${quoted}.thing` }])
  expect(read).toEqual({ status: 'fulfilled', value: [{ count: '2' }] })
})

test('a statement that failed to be prepared does not make those behind it give up their names', async () => {
  const { quoted, query } = await createSchema({ empty: true })
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) }
  const connection = connectTo(undefined, { logger })
  const read = { name: 'read_thing', text: `select count(*) as count from ${quoted}.thing` }
  const results = await connection.pipeline([read, read])
  expect(results.map((result) => result.status === 'rejected' && result.reason.code)).toEqual(['42P01', '42P01'])
  await query(`create table ${quoted}.thing (id int)`)
  expect(await connection.query(read)).toEqual([{ count: '0' }])
  expect(await connection.query({ ...NAMED, values: [read.name] })).toEqual([{ count: '1' }])
  expect(warnings).toEqual([])
})

test('a table that a migration changed under a prepared statement is read with its new columns (B80)', async () => {
  const { quoted, query } = await createSchema({ empty: true })
  await query(`create table ${quoted}.thing (id int)`)
  await query(`insert into ${quoted}.thing values (1)`)
  const connection = connectTo()
  const read = { name: 'read_thing', text: `select * from ${quoted}.thing` }
  const rows: TextRow[] = [...(await connection.query(read))]
  await query(`alter table ${quoted}.thing add column extra text default 'new'`)
  rows.push(...(await connection.query(read)))
  rows.push(...(await connection.query(read)))
  expect(rows).toEqual([{ id: '1' }, { id: '1', extra: 'new' }, { id: '1', extra: 'new' }])
})

test('a refused name inside an explicit transaction is sent again from its begin, so that its level still holds (B78, B73)', async () => {
  const { connectionString } = await createSchema({ migrated: false })
  const connection = new Connection({
    client: { connectionString, options: '-c default_transaction_isolation=serializable' },
  })
  const level = { name: 'level', text: `select current_setting('transaction_isolation') as level` }
  const inTransaction = [{ text: 'begin isolation level read committed' }, level, { text: 'commit' }, level]
  try {
    const levels = async () =>
      (await connection.pipeline(inTransaction)).map((result) =>
        result.status === 'fulfilled' ? (result.value[0]?.['level'] ?? null) : String(result.reason),
      )
    expect(await levels()).toEqual([null, 'read committed', null, 'serializable'])
    await connection.query({ text: 'deallocate all' })
    expect(await levels()).toEqual([null, 'read committed', null, 'serializable'])
  } finally {
    await connection.stop()
  }
})
