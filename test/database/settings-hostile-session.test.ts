import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type SharedDatabase, TestQueue, useSharedDatabase } from '../support/claims.js'
import { createSchema } from '../support/database.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

const EVIL = `evil_${randomUUID().slice(0, 8)}`

/** What a role, a database or an application may have set for its sessions. */
const SETTINGS = {
  search_path: `${EVIL},pg_catalog`,
  standard_conforming_strings: 'off',
  escape_string_warning: 'off',
  backslash_quote: 'on',
  DateStyle: 'German,DMY',
  TimeZone: 'Asia/Tokyo',
  IntervalStyle: 'sql_standard',
  bytea_output: 'escape',
  extra_float_digits: '0',
  quote_all_identifiers: 'on',
  plan_cache_mode: 'force_custom_plan',
  enable_indexscan: 'off',
  enable_nestloop: 'off',
  enable_sort: 'off',
  enable_tidscan: 'off',
  work_mem: '64kB',
}

const LOOK_ALIKE_TABLES = [
  'job',
  'lease',
  'queue',
  'tenant',
  'ring',
  'tenant_schedule',
  'walk',
  'signal',
  'waiter',
  'job_history',
]

const LOOK_ALIKE_FUNCTIONS = [
  'now()',
  'clock_timestamp()',
  'statement_timestamp()',
  'md5(text)',
  '"left"(text, integer)',
  'pg_notify(text, text)',
  'pg_advisory_xact_lock(integer, integer)',
  'set_config(text, text, boolean)',
  'unnest(bigint[])',
  'unnest(uuid[])',
  'unnest(text[])',
  'random()',
  'hashtext(text)',
  'date_part(text, timestamptz)',
  'to_char(timestamp, text)',
  'enqueue(text, jsonb, text, jsonb)',
  'claim_v1(text, uuid, text, text[], integer, double precision, boolean)',
]

beforeAll(async () => {
  await database.query(`create schema ${EVIL}`)
  for (const table of LOOK_ALIKE_TABLES) await database.query(`create table ${EVIL}.${table} (trap int)`)
  for (const signature of LOOK_ALIKE_FUNCTIONS) {
    await database.query(`
      create function ${EVIL}.${signature} returns void language plpgsql
      as $$ begin raise exception 'a look-alike was called: ${signature}'; end $$`)
  }
})

afterAll(async () => {
  await database.query(`drop schema ${EVIL} cascade`)
})

function hostileStore(shared: SharedDatabase) {
  return openStore(shared.schema, { options: hostileOptions() })
}

function hostileOptions(): string {
  return Object.entries(SETTINGS)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

test('the traps are set', async () => {
  await using open = hostileStore(database)
  const { connectionString } = database.schema
  const client = await database.schema.connect({ connectionString, options: hostileOptions() })
  expect((await databaseErrorOf(client.query('select clock_timestamp()'))).message).toContain('a look-alike was called')
  expect((await client.query('show standard_conforming_strings')).rows).toEqual([
    { standard_conforming_strings: 'off' },
  ])
  expect(await open.store.job('1')).toBeUndefined()
})

test('every operation of a job’s life works in a session with hostile settings and look-alikes (B84)', async () => {
  await using open = hostileStore(database)
  const queue = new TestQueue(open.store, 'hostile')
  const payload = `{"text":"it's \\"quoted\\" \\\\ $1 \\n"}`
  const runAt = new Date('2001-02-03T04:05:06.789Z')
  const ids = await queue.enqueue({ payload, runAt }, {}, {}, {}, { delayMs: 60_000 })
  const claim = await queue.claim(10, { listening: true })
  expect(claim.ids).toEqual(ids.slice(0, 4))
  expect(claim.jobs[0]).toMatchObject({ payload: JSON.parse(payload), runAt })
  expect(claim.nextDueMs).toBeGreaterThan(50_000)
  expect(await open.store.extend([claim.leaseId], 60_000)).toEqual(new Set([claim.leaseId]))

  const failure = { name: 'Error', message: `it's \\ "quoted"` }
  const outcomes = [
    { type: 'complete' },
    { type: 'retry', delayMs: 60_000, failure },
    { type: 'cancel', reason: `it's over` },
    { type: 'release' },
  ] as const
  const settlements = outcomes.map((outcome, index) => ({ jobId: ids[index] ?? '', leaseId: claim.leaseId, outcome }))
  expect(await open.store.settle(queue.name, settlements, [claim.leaseId])).toEqual(new Set(ids.slice(0, 4)))
  expect((await queue.record(ids[1])).errors).toMatchObject([{ ...failure, attempt: 1 }])
  expect(await queue.record(ids[0])).toMatchObject({ state: 'completed', runAt })
  expect(await open.store.cancel(ids[4] ?? '', 'not needed')).toBe(true)
  expect((await queue.record(ids[4])).state).toBe('cancelled')
})

test('leases are reclaimed and tables maintained in such a session (B84)', async () => {
  await using open = hostileStore(database)
  const queue = new TestQueue(open.store, 'hostile-reclaim')
  const [retried, discarded] = await queue.enqueue({}, { maxAttempts: 1 })
  await queue.claim(2, { leaseMs: -1 })
  expect(await open.store.reclaim()).toMatchObject({ retried: 1, discarded: 1 })
  expect((await queue.record(retried)).state).toBe('scheduled')
  expect((await queue.record(discarded)).state).toBe('discarded')
  await open.store.maintain()
  expect(await open.admin.configureQueue('hostile-reclaim', { history: 'none' })).toMatchObject({ history: 'none' })
  await open.admin.configureTenant('hostile-reclaim', 'acme', { weight: 2.5 })
  await expectSound(database)
})

test('such a session is notified on the same channel as everybody else, and notifies on it (B84)', async () => {
  await using open = hostileStore(database)
  const channel = await database.store.channel()
  expect(await open.store.channel()).toBe(channel)
  const listener = await database.schema.connect()
  const notified: string[] = []
  listener.on('notification', ({ payload }) => notified.push(payload ?? ''))
  await listener.query(`listen ${channel}`)
  const queue = new TestQueue(open.store, 'hostile-wake')
  await queue.claim(1, { listening: true })
  await queue.enqueue({})
  await until(() => notified.includes('hostile-wake'), { until: 'the notification has arrived' })
})

test('a history partition made in such a session has the bounds of a UTC day (B84)', async () => {
  await using open = hostileStore(database)
  await database.query('drop table :schema.job_history_settled, :schema.job_history_discarded')
  for (const [name, value] of [
    ['settled', 'settled'],
    ['discarded', 'discarded'],
  ]) {
    await database.query(
      `create table :schema.job_history_${name} partition of :schema.job_history for values in ('${value}') partition by range (finalized_at)`,
    )
  }
  await open.store.maintain()
  const bounds = await database.query<{ bound: string; day: string }>(
    `select pg_get_expr(relpartbound, oid) as bound, right(relname, 8) as day from pg_class
     where relnamespace = $1::regnamespace and relname ~ '^job_history_settled_[0-9]{8}$' order by 2`,
    [database.schema.quoted],
  )
  expect(bounds).toHaveLength(15)
  for (const { bound, day } of bounds) {
    const from = `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`
    expect(new Date(/from \('(.*?)'\)/i.exec(bound)?.[1] ?? '')).toEqual(new Date(`${from}T00:00:00Z`))
  }
})

test('two installations in one database do not see or wake each other (B84)', async () => {
  const other = await createSchema({ schema: `o'hara "1" ${randomUUID().slice(0, 8)}` })
  await using open = openStore(other)
  expect(await open.store.channel()).not.toBe(await database.store.channel())
  const here = database.queue('shared-name')
  const there = new TestQueue(open.store, 'shared-name')
  await here.enqueue({ tenant: 'here' })
  await there.enqueue({ tenant: 'there' })
  const client = await other.connect()
  await client.query('begin isolation level read committed')
  await client.query(
    `select * from ${other.quoted}.claim_v1('shared-name', $1, 'w', '{send-invoice}', 1, 1000, false)`,
    [randomUUID()],
  )
  // Not even the lock of a queue with the same name is shared.
  expect((await here.claim(2)).tenants).toEqual(['here'])
  await client.query('rollback')
  expect((await there.claim(2)).tenants).toEqual(['there'])
})
