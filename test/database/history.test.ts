import { afterEach, beforeEach, expect, test } from 'vitest'
import type { HistoryMode } from '../../src/settings/settings.js'
import { openStore, SharedDatabase, type TestQueue } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'

/** One schema for each test: these tests take its partitions away. */
let database: SharedDatabase

beforeEach(async () => {
  database = new SharedDatabase()
  await database.start()
})

afterEach(() => database.stop())

const FAILURE = { name: 'Error', message: 'm' }

async function finishEach(queue: TestQueue): Promise<string[]> {
  const ids = await queue.enqueueMany(3, { maxAttempts: 1 })
  const claim = await queue.claim(3)
  const outcomes = [
    { type: 'complete' },
    { type: 'cancel', reason: 'r' },
    { type: 'discard', failure: FAILURE },
  ] as const
  const settlements = outcomes.map((outcome, n) => ({ jobId: ids[n] ?? '', leaseId: claim.leaseId, outcome }))
  await database.store.settle(queue.name, settlements, [claim.leaseId])
  return ids
}

test.each<[HistoryMode, unknown[]]>([
  ['keep', [{ number: 0 }, { number: 1 }, { number: 2 }]],
  ['keep-without-payload', [undefined, undefined, { number: 2 }]],
  ['none', ['gone', 'gone', { number: 2 }]],
])(
  '%s: what is kept of completed, cancelled and discarded jobs; the last are always kept whole',
  async (history, payloads) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { history })
    const ids = await finishEach(queue)
    const records = await Promise.all(ids.map((id) => database.store.job(id)))
    expect(records.map((record) => (record ? record.payload : 'gone'))).toEqual(payloads)
    expect(records.flatMap((record) => (record ? [record.state] : []))).toEqual(
      history === 'none' ? ['discarded'] : ['completed', 'cancelled', 'discarded'],
    )
    expect(await database.value('select count(*)::int from :schema.job')).toBe(0)
  },
)

test('a finished job is kept with everything that is known of it', async () => {
  const queue = database.queue()
  const runAt = new Date('2020-02-03T04:05:06.789Z')
  const [id] = await queue.enqueue({ priority: 9, maxAttempts: 7, runAt, payload: '{"a":-0}', tenant: 't', kind: 'k' })
  const first = await queue.claim(1, { kinds: ['k'] })
  await queue.settle(first, { type: 'retry', delayMs: 0, failure: FAILURE })
  const before = await queue.record(id)
  await queue.settle(await queue.claim(1, { kinds: ['k'] }))
  const { finalizedAt, ...record } = await queue.record(id)
  const { state: _state, attempt: _attempt, ...same } = before
  expect(record).toStrictEqual({ ...same, state: 'completed', attempt: 2 })
  expect(finalizedAt?.getTime()).toBeGreaterThanOrEqual(record.createdAt.getTime())
})

test('the setting acts on the jobs that run, when they finish', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2)
  const claims = [await queue.claim(1), await queue.claim(1)]
  await database.admin.configureQueue(queue.name, { history: 'none' })
  await queue.settle(claims[0] as (typeof claims)[number])
  await database.admin.configureQueue(queue.name, { history: 'keep' })
  await queue.settle(claims[1] as (typeof claims)[number])
  expect(await database.store.job(claims[0]?.ids[0] ?? '')).toBeUndefined()
  expect((await queue.record(claims[1]?.ids[0])).state).toBe('completed')
})

test('a job that waits can be cancelled, is kept as the queue says, and cannot be cancelled twice', async () => {
  for (const history of ['keep', 'keep-without-payload', 'none'] as const) {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { history })
    const [available = '', scheduled = ''] = await queue.enqueue({}, { delayMs: 60_000 })
    for (const id of [available, scheduled]) {
      expect(await database.store.cancel(id, 'not needed')).toBe(true)
      expect(await database.store.cancel(id, 'again')).toBe(false)
      const record = await database.store.job(id)
      expect(record?.state).toBe(history === 'none' ? undefined : 'cancelled')
      expect(record?.payload).toEqual(history === 'keep' ? {} : undefined)
      if (record) expect(record.errors).toMatchObject([{ name: 'Cancelled', message: 'not needed', attempt: 0 }])
    }
    expect((await queue.claim(5)).jobs).toEqual([])
  }
})

/** Days from today, negative for the past, as the names of partitions have them. */
async function partitions(retention: 'settled' | 'discarded'): Promise<number[]> {
  const rows = await database.query<{ day: number }>(
    `select to_date(right(relname, 8), 'YYYYMMDD') - (now() at time zone 'UTC')::date as day from pg_class
     where relnamespace = $1::regnamespace and relname ~ ('^job_history_' || $2 || '_\\d{8}$') and relkind = 'r' order by day`,
    [database.schema.quoted, retention],
  )
  return rows.map(({ day }) => day)
}

async function dropPartitions(): Promise<void> {
  for (const retention of ['settled', 'discarded'] as const) {
    for (const day of await partitions(retention)) {
      await database.query(`drop table :schema.${await partitionName(retention, day)}`)
    }
  }
}

async function partitionName(retention: string, day: number): Promise<string> {
  return database.value(
    `select 'job_history_' || $1::text || '_' || to_char((now() at time zone 'UTC')::date + $2::integer, 'YYYYMMDD')`,
    [retention, day],
  )
}

/** A partition with one job in it, which finished at the last moment of that day. */
async function addPartition(retention: 'settled' | 'discarded', day: number): Promise<void> {
  const name = await partitionName(retention, day)
  const bounds = await database.value<string>(
    `select format('from (%L) to (%L)', (d + $1::integer) || ' 00:00+00', (d + $1::integer + 1) || ' 00:00+00')
     from (select (now() at time zone 'UTC')::date as d) as today`,
    [day],
  )
  await database.query(
    `create table :schema.${name} partition of :schema.job_history_${retention} for values ${bounds}`,
  )
  await database.query(
    `insert into :schema.${name} (id, queue, kind, tenant, state, priority, attempt, max_attempts, run_at, created_at, finalized_at, retention)
     select $2::integer + 1000, 'q', 'k', 't', case $1 when 'settled' then 'completed' else 'discarded' end, 0, 1, 1, now(), now(),
            ((now() at time zone 'UTC')::date + $2::integer + 1)::timestamp at time zone 'UTC' - interval '1 microsecond', $1::text`,
    [retention, day],
  )
}

test('partitions exist from today to a fortnight ahead', async () => {
  const days = Array.from({ length: 15 }, (_, day) => day)
  expect(await partitions('settled')).toEqual(days)
  expect(await partitions('discarded')).toEqual(days)
})

test('maintenance drops what is past its retention, which is longer for discarded jobs, and nothing else', async () => {
  for (const day of [-40, -9, -8, -7, -1]) await addPartition('settled', day)
  for (const day of [-400, -31, -30, -8]) await addPartition('discarded', day)
  await database.store.maintain()
  expect((await partitions('settled')).filter((day) => day < 0)).toEqual([-7, -1])
  expect((await partitions('discarded')).filter((day) => day < 0)).toEqual([-30, -8])
  // The oldest that is left finished at least so many whole days ago.
  expect(await database.value('select count(*)::int from :schema.job_history')).toBe(4)
})

test('tables of the user’s own that are named like partitions, or are partitions by another name, are not dropped', async () => {
  await database.query('create table :schema.job_history_settled_20010101 (mine int)')
  await database.query(
    `create table :schema.archive partition of :schema.job_history_settled for values from ('2001-01-01') to ('2002-01-01')`,
  )
  await database.store.maintain()
  expect(await database.value(`select to_regclass($1) is not null`, [`${database.schema.schema}.archive`])).toBe(true)
  expect(await database.query('select mine from :schema.job_history_settled_20010101')).toEqual([])
})

test.each(['complete', 'cancel', 'discard'] as const)(
  'without a partition for today, %s makes it and loses nothing',
  async (type) => {
    const queue = database.queue()
    const ids = await queue.enqueueMany(3)
    const claim = await queue.claim(3)
    await dropPartitions()
    const outcome =
      type === 'complete' ? { type } : type === 'cancel' ? { type, reason: 'r' } : { type, failure: FAILURE }
    expect((await queue.settle(claim, outcome)).sort()).toEqual(ids)
    expect(await partitions('settled')).toContain(0)
    expect((await queue.record(ids[0])).finalizedAt).toBeInstanceOf(Date)
    await expectSound(database)
  },
)

test('without a partition for today, last attempts are still reclaimed and waiting jobs cancelled (B29)', async () => {
  const queue = database.queue()
  const [lost] = await queue.enqueue({ maxAttempts: 1 })
  await queue.claim(1, { leaseMs: -1 })
  const [waiting = ''] = await queue.enqueue({})
  await dropPartitions()
  expect(await database.store.reclaim()).toMatchObject({ discarded: 1 })
  expect((await queue.record(lost)).state).toBe('discarded')
  await dropPartitions()
  expect(await database.store.cancel(waiting, 'r')).toBe(true)
  expect((await queue.record(waiting)).state).toBe('cancelled')
})

test('partitions are made by many workers at once without a clash', async () => {
  await dropPartitions()
  const maintain = async () => {
    await using open = openStore(database.schema)
    await open.store.maintain()
  }
  await Promise.all(Array.from({ length: 6 }, maintain))
  expect(await partitions('settled')).toHaveLength(15)
})

test('making partitions waits for no reader of the history, and none waits for it', async () => {
  await dropPartitions()
  const reader = await database.session()
  await reader.run('begin')
  expect(await reader.run('select id from :schema.job_history')).toEqual([])
  await database.query('select :schema.ensure_history_v1(14)')
  expect(await partitions('settled')).toHaveLength(15)
  expect(await reader.run('select id from :schema.job_history')).toEqual([])
})

test('a reader of the history makes maintenance fail in time and not wait in front of others, and it succeeds later', async () => {
  await database.query(`alter function :schema.prune_history_v1 set lock_timeout = '100ms'`)
  await addPartition('settled', -20)
  const reader = await database.session()
  await reader.run('begin')
  expect(await reader.run('select id from :schema.job_history')).toHaveLength(1)
  expect(await databaseErrorOf(database.store.maintain())).toMatchObject({ code: '55P03' })
  expect(await partitions('settled')).toContain(-20)
  await reader.run('commit')
  await database.store.maintain()
  expect(await partitions('settled')).not.toContain(-20)
})

test('a million finished jobs are not in the way: the hot table holds none of them', async () => {
  const queue = database.queue()
  for (let n = 0; n < 3; n++) {
    await queue.enqueueMany(200)
    await queue.settle(await queue.claim(200))
  }
  expect(await database.value('select count(*)::int from :schema.job')).toBe(0)
  expect(await database.value('select count(*)::int from :schema.job_history')).toBe(600)
  expect(await database.value('select count(*)::int from :schema.lease')).toBe(0)
})
