import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { createSchema } from '../support/database.js'
import { databaseErrorOf } from '../support/expect.js'
import { newJob, newJobs } from '../support/factory.js'

const database = useSharedDatabase()

/** Three statements' worth and a bit; the real thing, 200,000, is a matter of waiting longer. */
const LARGE = 30_011

test('one job is inserted as it was given, waits as available and has had no attempt', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ tenant: 'acme', kind: 'k', payload: '{"a":1}', priority: 7, maxAttempts: 3 })
  const record = await queue.record(id)
  expect(record).toMatchObject({
    id,
    queue: queue.name,
    tenant: 'acme',
    kind: 'k',
    payload: { a: 1 },
    priority: 7,
    maxAttempts: 3,
    attempt: 0,
    state: 'available',
    errors: [],
  })
  expect(record.runAt).toEqual(record.createdAt)
})

test('an enqueue of nothing does nothing', async () => {
  expect(await database.queue().enqueue()).toEqual([])
})

test('ids come in the order of the jobs, which is also the order in which equal jobs are claimed', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(500)
  expect(ids).toEqual([...ids].sort((a, b) => Number(BigInt(a) - BigInt(b))))
  const claim = await queue.claim(500)
  expect(claim.ids).toEqual(ids)
  expect(claim.jobs.map(({ payload }) => payload)).toEqual(ids.map((_, number) => ({ number })))
})

test('more jobs than a statement has parameters are enqueued all at once, ids in order (B53)', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(LARGE)
  expect(new Set(ids).size).toBe(LARGE)
  const rows = await database.query<{ id: string; number: string }>(
    `select id::text, payload ->> 'number' as number from :schema.job where queue = $1 order by job.id`,
    [queue.name],
  )
  expect(rows.map(({ id }) => id)).toEqual(ids)
  expect(rows.every(({ number }, index) => Number(number) === index)).toBe(true)
})

test('when one job of thousands cannot be stored, none is (B53)', async () => {
  const queue = database.queue()
  const jobs = newJobs(LARGE, { queue: queue.name })
  jobs[LARGE - 2] = newJob({ queue: queue.name, payload: '{"broken"' })
  const error = await databaseErrorOf(database.store.enqueue(jobs))
  expect(error.code).toBe('22P02')
  expect(await database.value('select count(*)::int from :schema.job where queue = $1', [queue.name])).toBe(0)
})

test('jobs of many queues, kinds and tenants go in one statement', async () => {
  const queues = [database.queue(), database.queue()]
  const jobs = queues.flatMap(({ name }) =>
    ['k1', 'k2'].flatMap((kind) => ['t1', 't2'].map((tenant) => newJob({ queue: name, kind, tenant }))),
  )
  const ids = await database.store.enqueue(jobs)
  for (const [index, id] of ids.entries()) {
    const { queue, kind, tenant } = jobs[index] as (typeof jobs)[number]
    expect(await database.store.job(id)).toMatchObject({ queue, kind, tenant })
  }
})

test('a delay counts from the time of the database, and a time in the past means at once', async () => {
  const queue = database.queue()
  const ids = await queue.enqueue({ delayMs: 3_600_000 }, { runAt: new Date('2001-02-03T04:05:06.789Z') }, {})
  const [delayed, past, plain] = await Promise.all(ids.map((id) => queue.record(id)))
  expect(delayed?.state).toBe('scheduled')
  expect(await database.value('select (run_at - created_at)::text from :schema.job where id = $1', [ids[0]])).toBe(
    '01:00:00',
  )
  expect(past).toMatchObject({ state: 'available', runAt: new Date('2001-02-03T04:05:06.789Z') })
  expect(plain?.state).toBe('available')
})

test('the first and the last time that a Date may name are stored exactly', async () => {
  const queue = database.queue()
  const times = [new Date('0001-01-01T00:00:00.000Z'), new Date('9999-12-31T23:59:59.999Z')]
  const ids = await queue.enqueue(...times.map((runAt) => ({ runAt, priority: 1_000 })))
  const records = await Promise.all(ids.map((id) => queue.record(id)))
  expect(records.map(({ runAt }) => runAt)).toEqual(times)
  expect(records.map(({ state }) => state)).toEqual(['available', 'scheduled'])
})

test('names of 255 bytes fit all three into the index, in any script', async () => {
  const longest = `${'ж'.repeat(127)}x`
  const queue = database.queue(longest)
  const [id] = await queue.enqueue({ kind: longest, tenant: longest })
  expect((await queue.claim(1, { kinds: [longest] })).ids).toEqual([id])
})

test.each([
  `x' or '1'='1`,
  'x"; drop table job;--',
  '%',
  '_',
  '\\',
  '{a,b}',
  '$1',
  'a.b[0]',
  '__proto__',
  'null',
  '\t',
])('the name %j is data as queue, kind and tenant alike (B94)', async (name) => {
  const queue = database.queue(name)
  const [id] = await queue.enqueue({ kind: name, tenant: name })
  const claim = await queue.claim(5, { kinds: [name], workerId: name })
  expect(claim.jobs).toMatchObject([{ id, queue: name, kind: name, tenant: name }])
  expect(await queue.settle(claim)).toEqual([id])
})

test('ids beyond 2^53 are exact everywhere (B61)', async () => {
  const own = await createSchema()
  await using open = openStore(own)
  const queue = new TestQueue(open.store, 'large')
  await own.query(`select setval(pg_get_serial_sequence('${own.quoted}.job', 'id'), 9007199254740992)`)
  const ids = await queue.enqueueMany(3)
  expect(ids).toEqual(['9007199254740993', '9007199254740994', '9007199254740995'])
  const claim = await queue.claim(3)
  expect(claim.ids).toEqual(ids)
  expect(await queue.settle(claim)).toEqual(ids)
  expect((await queue.record(ids[0])).state).toBe('completed')
})
