import { expect, test } from 'vitest'
import { cancelAll, drain, moveJobs, purge } from '../../src/operations/operations.js'
import { useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

/** Jobs of a queue in every state: some run, some wait for a retry, for their time, for their key, or for a turn. */
async function busyQueue(tenants: readonly string[] = ['a', 'b']) {
  const queue = database.queue()
  for (const tenant of tenants) await queue.enqueueMany(4, { tenant })
  const retried = await queue.claim(2)
  await queue.settle(retried, { type: 'retry', delayMs: 3_600_000, failure: { name: 'Error', message: 'no' } })
  const running = await queue.claim(2)
  for (const tenant of tenants) {
    await queue.enqueueMany(2, { tenant, delayMs: 3_600_000 })
    await queue.enqueueMany(3, { tenant, key: 'account' })
    await queue.enqueueMany(2, { tenant, kind: 'other' })
  }
  return { queue, running }
}

async function states(queue: string): Promise<Record<string, number>> {
  const rows = await database.query<{ state: string; jobs: number }>(
    'select state::text, count(*)::int as jobs from :schema.job where queue = $1 group by state',
    [queue],
  )
  return Object.fromEntries(rows.map(({ state, jobs }) => [state, jobs]))
}

test('cancelling all ends what waits, in every state, keeps it in the history, and leaves what runs', async () => {
  const { queue, running } = await busyQueue()
  expect(await states(queue.name)).toMatchObject({ running: 2, scheduled: 6, blocked: 6 })
  const cancelled = await cancelAll(database.admin, queue.name, { reason: 'the end of it' })
  expect(cancelled).toBe(20)
  expect(await states(queue.name)).toEqual({ running: 2 })
  const kept = await database.query(
    `select state, key, errors -> -1 ->> 'message' as message, payload::text from :schema.job_history where queue = $1`,
    [queue.name],
  )
  expect(kept).toHaveLength(20)
  expect(kept.every((row) => row['state'] === 'cancelled' && row['message'] === 'the end of it')).toBe(true)
  expect(kept.filter((row) => row['key'] === 'account')).toHaveLength(6)
  expect(await queue.settle(running)).toHaveLength(2)
  await expectSound(database)
})

test('tenant and kind choose what is cancelled, purged and moved, together and alone', async () => {
  const { queue } = await busyQueue()
  const target = database.queue()
  expect(await cancelAll(database.admin, queue.name, { tenant: 'a', kind: 'other' })).toBe(2)
  expect(await purge(database.admin, queue.name, { kind: 'other' })).toBe(2)
  expect(await purge(database.admin, queue.name, { tenant: 'nobody' })).toBe(0)
  expect(await moveJobs(database.admin, { from: queue.name, to: target.name }, { tenant: 'b' })).toBe(8)
  expect(await cancelAll(database.admin, queue.name, {})).toBe(8)
  expect(await cancelAll(database.admin, target.name, {})).toBe(8)
})

test('purging leaves no trace of what waits, and on request none of what has ended', async () => {
  const { queue, running } = await busyQueue()
  await queue.settle(running)
  expect(await purge(database.admin, queue.name, { tenant: 'a', history: true })).toBe(10 + 1)
  expect(await purge(database.admin, queue.name, {})).toBe(10)
  const rows = await database.query('select tenant from :schema.job_history where queue = $1', [queue.name])
  expect(rows).toEqual([{ tenant: 'b' }])
  expect(await states(queue.name)).toEqual({})
})

test('moved jobs keep id, attempt and order, and the other queue’s claims find them at once', async () => {
  const { queue } = await busyQueue(['a'])
  const target = database.queue()
  expect(await target.claim(5)).toMatchObject({ jobs: [] })
  const waiting = `select id, tenant, kind, attempt, order_at, errors from :schema.job where queue = $1 and state <> 'running' order by id`
  const before = await database.query(waiting, [queue.name])
  expect(await moveJobs(database.admin, { from: queue.name, to: target.name }, {})).toBe(before.length)
  expect(await database.query(waiting, [target.name])).toEqual(before)
  const first = await target.claim(20, { kinds: ['send-invoice', 'other'] })
  expect(first.jobs.filter(({ key }) => key !== undefined)).toHaveLength(1)
  expect(first.jobs).toHaveLength(3)
  await target.settle(first)
  expect((await target.claim(20, { kinds: ['send-invoice', 'other'] })).jobs).toMatchObject([{ key: 'account' }])
  await expectSound(database)
})

test('a key is free again when the job that had it is cancelled, purged or moved away', async () => {
  const ways = [
    (queue: string) => cancelAll(database.admin, queue, { tenant: 'first' }),
    (queue: string) => purge(database.admin, queue, { tenant: 'first' }),
    (queue: string) => moveJobs(database.admin, { from: queue, to: `${queue}-away` }, { tenant: 'first' }),
  ]
  for (const end of ways) {
    const queue = database.queue()
    await queue.enqueue({ tenant: 'first', key: 'k' })
    await queue.enqueue({ tenant: 'second', key: 'k' })
    const claim = await queue.claim(5)
    expect(claim.tenants).toEqual(['first'])
    await queue.settle(claim, { type: 'retry', delayMs: 3_600_000, failure: { name: 'Error', message: 'no' } })
    expect((await queue.claim(5)).jobs).toEqual([])
    expect(await end(queue.name)).toBe(1)
    expect((await queue.claim(5)).tenants).toEqual(['second'])
  }
})

test('jobs enqueued after the beginning are not touched, and progress is told batch by batch', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2_500)
  const told: number[] = []
  let enqueued: Promise<unknown> | undefined
  const onProgress = (jobs: number) => {
    told.push(jobs)
    enqueued ??= queue.enqueueMany(10)
  }
  expect(await cancelAll(database.admin, queue.name, { onProgress })).toBe(2_500)
  expect(told.slice(0, 3)).toEqual([1_000, 2_000, 2_500])
  await enqueued
  expect(await states(queue.name)).toEqual({ available: 10 })
})

test('an abort stops between two batches, and what was done stays done', async () => {
  const queue = database.queue()
  await queue.enqueueMany(1_500)
  const stop = new AbortController()
  const cancelled = purge(database.admin, queue.name, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('enough')),
  })
  await expect(cancelled).rejects.toThrow('enough')
  expect(await states(queue.name)).toEqual({ available: 500 })
})

test('a job that somebody holds is waited for: what started meanwhile is left, what did not is cancelled', async () => {
  const queue = database.queue()
  const [held = ''] = await queue.enqueueMany(3)
  const session = await database.session()
  await session.run('begin')
  await session.run('select from :schema.job where id = $1 for update', [held])
  const told: number[] = []
  const cancelled = cancelAll(database.admin, queue.name, { onProgress: (jobs) => told.push(jobs) })
  await until(() => told.length > 0, { until: 'the others are cancelled' })
  expect(told).toEqual([2])
  await session.run('commit')
  expect(await cancelled).toBe(3)
})

test('claims and settling go on while everything is cancelled, and no job is lost or runs on after it', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(3_000)
  const run = async () => {
    const done: string[] = []
    for (;;) {
      const claim = await queue.claim(20)
      if (claim.jobs.length === 0) return done
      done.push(...(await queue.settle(claim)))
    }
  }
  const [cancelled, ...done] = await Promise.all([cancelAll(database.admin, queue.name, {}), run()])
  expect(cancelled + done.flat().length).toBe(ids.length)
  const ended = await database.value<number>('select count(*)::int from :schema.job_history where queue = $1', [
    queue.name,
  ])
  expect(ended).toBe(ids.length)
  await expectSound(database)
})

test('the functions in SQL do the same in the caller’s transaction, and refuse what they do not know (B13)', async () => {
  const { queue } = await busyQueue()
  const target = database.queue()
  const session = await database.session()
  await session.run('begin')
  expect(await session.run('select :schema.cancel_all($1)::int as jobs', [queue.name])).toEqual([{ jobs: 20 }])
  await session.run('rollback')
  const all = (text: string, ...values: string[]) => database.value<number>(text, [queue.name, ...values])
  expect(await all('select :schema.move_jobs($1, $2, $3)::int', target.name, '{"tenant":"a"}')).toBe(10)
  expect(await all('select :schema.cancel_all($1, $2)::int', '{"kind":"other"}')).toBe(2)
  expect(await all('select :schema.purge($1, $2)::int', '{"history":true}')).toBe(8 + 2)
  for (const [text, sentence] of [
    [`select :schema.cancel_all('q', '{"tenat":"a"}')`, 'among tenant, kind, got "tenat"'],
    [`select :schema.cancel_all('q', '{"tenant":7}')`, 'tenant of filter to be a text'],
    [`select :schema.purge('q', '{"history":"yes"}')`, 'history of filter to be true or false, got "yes"'],
    [`select :schema.move_jobs('q', 'q')`, "to_queue to be another queue than 'q'"],
    [`select :schema.move_jobs('q', '')`, "to_queue to be a text of 1 to 255 bytes, got ''"],
    [`select :schema.pause('q', '{"tenant":"a","kind":"b"}')`, 'a tenant or a kind, got both'],
  ] as const) {
    const error = await databaseErrorOf(database.query(text))
    expect(error).toMatchObject({ code: '22023', message: expect.stringContaining(sentence) as string })
  }
})

test('drain pauses, waits for what runs and says whether it was in time', async () => {
  const { queue, running } = await busyQueue()
  expect(await drain(database.admin, queue.name, { timeoutMs: 1 })).toBe(false)
  expect((await queue.claim(5)).jobs).toEqual([])
  const looks: number[] = []
  const drained = drain(database.admin, queue.name, { onProgress: ({ running: jobs }) => looks.push(jobs) })
  await until(() => looks.length > 0, { until: 'drain has looked' })
  expect(looks).toContain(2)
  await queue.settle(running)
  expect(await drained).toBe(true)
  expect((await queue.claim(5)).jobs).toEqual([])
  await database.admin.resume(queue.name, {})
  expect((await queue.claim(5)).jobs).toHaveLength(5)
})

test('drain of a tenant waits for that tenant alone', async () => {
  const { queue, running } = await busyQueue(['a', 'b'])
  expect(new Set(running.tenants)).toEqual(new Set(['a', 'b']))
  const ofA = running.jobs.flatMap(({ id, tenant }) => (tenant === 'a' ? [id] : []))
  const settlements = running.settlements().filter(({ jobId }) => ofA.includes(jobId))
  await queue.store.settle(queue.name, settlements, [])
  expect(await drain(database.admin, queue.name, { tenant: 'a' })).toBe(true)
  expect(await drain(database.admin, queue.name, { tenant: 'b', timeoutMs: 1 })).toBe(false)
})

test('drain until empty pauses nothing and waits for all that waits', async () => {
  const queue = database.queue()
  await queue.enqueueMany(3)
  const drained = drain(database.admin, queue.name, { until: 'empty' })
  const claim = await queue.claim(3)
  expect(claim.jobs).toHaveLength(3)
  await queue.settle(claim)
  expect(await drained).toBe(true)
})

test('an abort ends the waiting and leaves the pause', async () => {
  const { queue } = await busyQueue()
  const stop = new AbortController()
  const drained = drain(database.admin, queue.name, {
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('enough')),
  })
  await expect(drained).rejects.toThrow('enough')
  expect((await queue.claim(5)).jobs).toEqual([])
})
