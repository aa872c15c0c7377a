import { expect, inject, onTestFinished, test } from 'vitest'
import { NotificationConnection } from '../../src/driver/notifications.js'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { silentLogger } from '../../src/logger.js'
import { systemRandom } from '../../src/random.js'
import { createSchema } from '../support/database.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'

interface Listening {
  readonly connection: NotificationConnection
  readonly received: string[]
  readonly warnings: string[]
  /** How often the session was (re)connected. */
  connects(): number
}

async function listenOn(channel: string, url = inject('databaseUrl'), heartbeatMs = 100): Promise<Listening> {
  const received: string[] = []
  const warnings: string[] = []
  let connects = 0
  const connection = new NotificationConnection({
    client: { connectionString: url },
    channel,
    onNotification: (payload) => received.push(payload),
    onConnected: () => {
      connects += 1
    },
    random: systemRandom,
    logger: { ...silentLogger, warn: (message) => warnings.push(message) },
    heartbeatMs,
  })
  onTestFinished(() => connection.stop())
  await connection.start()
  await until(() => connects > 0, { until: 'the first session listens' })
  return { connection, received, warnings, connects: () => connects }
}

test.each(['plain', 'Tenantry: "quoted"', "o'hara", 'a.b', 'схема'])(
  'notifications on a channel called %s arrive, and those of others do not',
  async (name) => {
    const { query, schema } = await createSchema({ empty: true })
    const channel = `${name} ${schema}`
    const { received } = await listenOn(channel)
    await query('select pg_notify($1, $2)', [`${channel}!`, 'for somebody else'])
    await query('select pg_notify($1, $2)', [channel, 'mail'])
    await query('select pg_notify($1, $2)', [channel, ''])
    await until(() => received.length >= 2, { until: 'both notifications are there' })
    expect(received).toEqual(['mail', ''])
  },
)

test('after a terminated session the next one listens and says so, with one warning (B71)', async () => {
  const { query, schema } = await createSchema({ empty: true })
  const url = new URL(inject('databaseUrl'))
  url.searchParams.set('application_name', schema)
  const { received, warnings, connects } = await listenOn(schema, url.href)
  await query('select pg_terminate_backend(pid, 30000) from pg_stat_activity where application_name = $1', [schema])
  await until(() => connects() === 2, { until: 'the second session listens' })
  await query('select pg_notify($1, $2)', [schema, 'mail'])
  await until(() => received.length > 0, { until: 'a notification arrives' })
  expect(warnings).toHaveLength(1)
})

test('a restart of the server is survived, with a look at once when it is back (B71)', async () => {
  await using server = await EmbeddedServer.start({ durable: false })
  const { connection, warnings, connects } = await listenOn('channel', server.connectionString)
  await server.restart('immediate')
  await until(() => connects() >= 2, { until: 'the next session listens' })
  expect(connection.isListening).toBe(true)
  expect(warnings).toHaveLength(1)
  await connection.stop()
})

test('a half-open connection is noticed by its own heartbeat and replaced (B71)', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const { query, schema } = await createSchema({ empty: true })
  const { connection, received, connects } = await listenOn(schema, proxy.url)
  proxy.pause()
  await until(() => !connection.isListening, { until: 'the silence is noticed' })
  proxy.cut()
  await until(() => connects() === 2, { until: 'the next session listens' })
  await query('select pg_notify($1, $2)', [schema, 'mail'])
  await until(() => received.length > 0, { until: 'a notification arrives' })
  await connection.stop()
})

test('a session that does not listen any more is noticed and replaced (B71)', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const { schema } = await createSchema({ empty: true })
  const { connection, connects } = await listenOn(schema, proxy.url, 1_000)
  proxy.slipIn(simpleQuery('unlisten *'))
  await until(() => connects() === 2, { until: 'the next session listens' })
  expect(connection.isListening).toBe(true)
  await connection.stop()
})

/** As in PostgreSQL's protocol: the letter, the length of the rest, the text and a zero. */
function simpleQuery(text: string): Uint8Array {
  const body = Buffer.from(`${text}\0`)
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from('Q'), length, body])
}

test('a pooler in between is noticed, and nobody relies on notifications (B73)', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  // Poolers greet with numbers of their own: BackendKeyData is a K, its length, the process and its key.
  proxy.rewriteReplies((reply) => {
    const at = reply.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]))
    if (at >= 0) reply.writeInt32BE(1, at + 5)
    return reply
  })
  const { connection, warnings } = await listenOn('channel', proxy.url)
  expect(connection.isListening).toBe(false)
  expect(warnings).toEqual([expect.stringContaining('cannot be relied on through a pooler')])
  await connection.stop()
})

test('stop does not wait for a server that does not answer, whether connected or connecting (B86)', async () => {
  await using proxy = await TcpProxy.to(inject('databaseUrl'))
  const { connection } = await listenOn('channel', proxy.url, 60_000)
  proxy.pause()
  await connection.stop()
  const connecting = new NotificationConnection({
    client: { connectionString: proxy.url },
    channel: 'channel',
    onNotification: () => {},
    onConnected: () => expect.fail('the proxy passes nothing on'),
    random: systemRandom,
  })
  await connecting.start()
  await connecting.stop()
  expect(connecting.isListening).toBe(false)
})

test('a connection may be started and stopped again and again', async () => {
  const { query, schema } = await createSchema({ empty: true })
  const { connection, received, connects } = await listenOn(schema)
  await connection.start()
  await connection.stop()
  await connection.stop()
  await query('select pg_notify($1, $2)', [schema, 'to nobody'])
  await connection.start()
  await until(() => connects() === 2, { until: 'it listens again' })
  await query('select pg_notify($1, $2)', [schema, 'mail'])
  await until(() => received.length > 0, { until: 'a notification arrives' })
  expect(received).toEqual(['mail'])
})
