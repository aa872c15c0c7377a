import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Connection } from '../../src/driver/connection.js'
import type { SqlQuery } from '../../src/driver/statement.js'
import { defineJob } from '../../src/index.js'
import { PgStore } from '../../src/store/pg-store.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

/** Longer than any test waits, so that nothing is found by polling. */
const NO_POLL_MS = 120_000

const sendInvoice = defineJob({
  kind: 'send-invoice',
  payload: z.object({ invoiceId: z.string(), dueAt: z.coerce.date().optional() }),
  maxAttempts: 5,
})
const anything = defineJob({ kind: 'anything', maxAttempts: 3, retry: { baseMs: 10, jitter: 'none' } })
const heavy = defineJob({ kind: 'heavy' })

const many = (count: number, tenant = 'acme') =>
  Array.from({ length: count }, (_, index) => ({ definition: anything, payload: { index }, tenant }))

test('a job goes from its enqueue through a typed handler into the history', async () => {
  const { tenantry } = await createTenantry()
  const seen: unknown[] = []
  const worker = tenantry.worker({ queue: 'default', concurrency: 10 })
  worker.handle(sendInvoice, async (job) => {
    const { invoiceId, dueAt } = job.payload
    seen.push([invoiceId, dueAt?.getTime(), job.tenant, job.attempt, job.kind, job.queue])
  })
  const id = await tenantry.enqueue(sendInvoice, { invoiceId: '42', dueAt: '2030-01-01' }, { tenant: 'acme' })
  await worker.start()
  const record = await until(
    async () => {
      const found = await tenantry.job(id)
      return found?.state === 'completed' ? found : undefined
    },
    { until: 'the job is completed' },
  )
  expect(seen).toEqual([['42', Date.UTC(2030, 0, 1), 'acme', 1, 'send-invoice', 'default']])
  expect(record).toMatchObject({ attempt: 1, errors: [] })
})

test('workers of several processes run every job once and leave nothing behind', async () => {
  const { tenantry, another, query, quoted } = await createTenantry()
  const runs: string[] = []
  const workers = [tenantry, another(), another()].map((client) => client.worker({ concurrency: 7 }))
  for (const worker of workers) {
    worker.handle(anything, async (job) => {
      runs.push(job.id)
    })
  }
  const ids = await tenantry.enqueueMany([...many(250, 'noisy'), ...many(10, 'quiet')])
  for (const worker of workers) await worker.start()
  const left = () => query(`select from ${quoted}.job union all select from ${quoted}.lease`)
  await until(async () => (await left()).length === 0, { until: 'all jobs are settled and all leases removed' })
  expect(runs.toSorted()).toEqual(ids.toSorted())
  expect(await query(`select state, count(*)::int from ${quoted}.job_history group by state`)).toEqual([
    { state: 'completed', count: 260 },
  ])
})

test('jobs without a handler here are neither claimed nor in the way (B03)', async () => {
  const { tenantry, query, quoted } = await createTenantry()
  await tenantry.enqueueMany(
    Array.from({ length: 2_000 }, () => ({ definition: heavy, payload: null, tenant: 'acme' })),
  )
  await tenantry.enqueueMany(many(10))
  const worker = tenantry.worker()
  let runs = 0
  worker.handle(anything, async () => {
    runs += 1
  })
  await worker.start()
  await until(() => runs === 10, { until: 'the handled kind has run' })
  await worker.stop()
  expect(await query(`select distinct kind, state::text, attempt from ${quoted}.job`)).toEqual([
    { kind: 'heavy', state: 'available', attempt: 0 },
  ])
})

test('a worker for some of the kinds leaves the others to a worker for them', async () => {
  const { tenantry } = await createTenantry()
  const runs: string[] = []
  const pools = { light: ['anything'], heavy: ['heavy'] }
  for (const [pool, kinds] of Object.entries(pools)) {
    const worker = tenantry.worker({ kinds })
    for (const definition of [anything, heavy]) {
      worker.handle(definition, async (job) => {
        runs.push(`${job.kind} in ${pool}`)
      })
    }
    await worker.start()
  }
  for (const definition of [anything, heavy]) await tenantry.enqueue(definition, null, { tenant: 'acme' })
  await until(() => runs.length === 2, { until: 'both have run' })
  expect(runs.toSorted()).toEqual(['anything in light', 'heavy in heavy'])
})

test('the queues of a worker share its slots, and the backlog of one does not keep the other out', async () => {
  const { tenantry } = await createTenantry()
  const order: string[] = []
  const worker = tenantry.worker({ queues: ['deep', 'shallow'], concurrency: 2 })
  let running = 0
  let most = 0
  worker.handle(anything, async (job) => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    order.push(job.queue)
  })
  await tenantry.enqueueMany(many(200).map((job) => ({ ...job, queue: 'deep' })))
  await tenantry.enqueueMany(many(5).map((job) => ({ ...job, queue: 'shallow' })))
  await worker.start()
  await until(() => order.length === 205, { until: 'all have run' })
  expect(most).toBeLessThanOrEqual(2)
  expect(order.lastIndexOf('shallow')).toBeLessThan(100)
})

test('a notification alone brings a job to an idle worker, also from the transaction of another client', async () => {
  const { tenantry, another, connect } = await createTenantry()
  const runs: unknown[] = []
  const claims: number[] = []
  const worker = tenantry.worker({
    pollMinMs: NO_POLL_MS,
    pollMaxMs: NO_POLL_MS,
    observe: { claim: ({ claimed }) => claims.push(claimed) },
  })
  worker.handle(anything, async (job) => {
    runs.push(job.payload)
  })
  await worker.start()
  await until(() => claims.length > 0, { until: 'the worker has found nothing' })
  await another().enqueue(anything, 'first', { tenant: 'acme' })
  await until(() => runs.length === 1, { until: 'the first job has run' })
  const client = await connect()
  await client.query('begin')
  await tenantry.enqueue(anything, 'second', { tenant: 'acme', transaction: client })
  expect(runs).toEqual(['first'])
  await client.query('commit')
  await until(() => runs.length === 2, { until: 'the second job has run' })
})

test('without LISTEN everything works by polling', async () => {
  const { tenantry, another, query, quoted, connectionString } = await createTenantry()
  const url = new URL(connectionString)
  url.searchParams.set('application_name', `listener in ${quoted}`)
  const worker = another({ connectionString, listenConnectionString: url.href }).worker({ listen: false })
  let runs = 0
  worker.handle(anything, async () => {
    runs += 1
  })
  await worker.start()
  await tenantry.enqueueMany(many(20))
  await until(() => runs === 20, { until: 'all have run' })
  const listeners = query('select from pg_stat_activity where application_name = $1', [`listener in ${quoted}`])
  expect(await listeners).toEqual([])
  expect(await query(`select from ${quoted}.waiter`)).toEqual([])
})

test('a poll of an idle queue sends one statement, and still brings the jobs that it finds (B101)', async () => {
  const { tenantry, schema, connectionString } = await createTenantry()
  const connection = new Connection({ client: { connectionString } })
  onTestFinished(() => connection.stop())
  const sent: number[] = []
  const counting = {
    query: (query: SqlQuery) => {
      sent.push(1)
      return connection.query(query)
    },
    pipeline: (queries: readonly SqlQuery[]) => {
      sent.push(queries.length)
      return connection.pipeline(queries)
    },
  }
  const store = new PgStore(counting, schema)
  const claim = (likelyEmpty: boolean) => {
    const lease = { leaseId: randomUUID(), workerId: 'me', leaseMs: 30_000 }
    return store.claim({ ...lease, queue: 'default', kinds: ['anything'], count: 5, listening: false, likelyEmpty })
  }
  await claim(false)
  expect((await claim(true)).jobs).toEqual([])
  expect(sent).toEqual([2, 1])
  const ids = await tenantry.enqueueMany(many(3))
  const { jobs } = await claim(true)
  expect(jobs.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  expect(sent).toEqual([2, 1, 1, 1])
})

test('a job that becomes due, and one that is snoozed or retried, is claimed when its time has come', async () => {
  const { tenantry } = await createTenantry()
  const attempts: string[] = []
  const worker = tenantry.worker({ listen: false, pollMinMs: NO_POLL_MS, pollMaxMs: NO_POLL_MS })
  worker.handle(anything, async (job, context) => {
    attempts.push(`${job.payload} ${job.attempt}`)
    if (job.payload === 'snoozed' && attempts.filter((attempt) => attempt === 'snoozed 1').length < 2) {
      return context.snooze(30)
    }
    if (job.payload === 'retried' && job.attempt === 1) throw new Error('once')
    return undefined
  })
  for (const payload of ['snoozed', 'retried']) await tenantry.enqueue(anything, payload, { tenant: 'acme' })
  await tenantry.enqueue(anything, 'delayed', { tenant: 'acme', delayMs: 200 })
  await worker.start()
  await until(() => attempts.length === 5, { until: 'all have run' })
  expect(attempts.toSorted()).toEqual(['delayed 1', 'retried 1', 'retried 2', 'snoozed 1', 'snoozed 1'])
})

test('failures with NUL and lone surrogates are stored and do not hold up their neighbours (B38)', async () => {
  const { tenantry } = await createTenantry()
  const broken: Record<string, () => unknown> = {
    message: () => raise(new Error('bad \0 byte')),
    name: () => raise(Object.assign(new Error('x'), { name: 'Na\0me' })),
    stack: () => raise(Object.assign(new Error('x'), { stack: 'at \0' })),
    cause: () => raise(new Error('outer', { cause: new Error('in\0ner') })),
    surrogate: () => raise(new Error('half \ud800 pair')),
    text: () => raise('just \0 text'),
    result: () => ({ out: 'a\0b' }),
  }
  const worker = tenantry.worker({ concurrency: 60 })
  worker.handle(anything, (async ({ payload }: { payload: { break?: string } }) =>
    payload.break === undefined ? undefined : broken[payload.break]?.()) as never)
  const poisoned = await tenantry.enqueueMany(
    Object.keys(broken).map((name) => ({
      definition: anything,
      payload: { break: name },
      tenant: 'acme',
      maxAttempts: 1,
    })),
  )
  const healthy = await tenantry.enqueueMany(many(50))
  await worker.start()
  const states = async (ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await tenantry.job(id))?.state ?? 'missing'))
  const final = ['completed', 'discarded']
  await until(async () => (await states([...poisoned, ...healthy])).every((state) => final.includes(state)), {
    until: 'every job is settled',
  })
  expect(new Set(await states(poisoned))).toEqual(new Set(['discarded']))
  expect(new Set(await states(healthy))).toEqual(new Set(['completed']))
  const [record] = await Promise.all(poisoned.map((id) => tenantry.job(id)))
  expect(record?.errors[0]?.message).toBe('bad \uFFFD byte')
})

test('a batch handler completes, cancels and fails the jobs of its batch one by one', async () => {
  const { tenantry } = await createTenantry()
  const worker = tenantry.worker({ concurrency: 10 })
  worker.handleBatch(anything, { size: 10, waitMs: 50 }, async (jobs, context) =>
    jobs.map((job) => {
      const { index } = job.payload as { index: number }
      if (index === 0) return context.cancel('zero')
      return index === 1 ? new Error('one') : undefined
    }),
  )
  const ids = await tenantry.enqueueMany(many(10).map((job) => ({ ...job, maxAttempts: 1 })))
  await worker.start()
  const states = () => Promise.all(ids.map(async (id) => (await tenantry.job(id))?.state))
  await until(async () => (await states()).every((state) => state !== 'available' && state !== 'running'), {
    until: 'every job is settled',
  })
  expect(await states()).toEqual(['cancelled', 'discarded', ...Array(8).fill('completed')])
})

test('a worker whose schema is not migrated does not start, and says what to do', async () => {
  const { another } = await createTenantry()
  const worker = another({ schema: 'never_migrated' }).worker()
  worker.handle(anything, async () => {})
  await expect(worker.start()).rejects.toMatchObject({
    code: 'MIGRATION_REQUIRED',
    message: expect.stringContaining('tenantry migrate'),
  })
})

function raise(thrown: unknown): never {
  throw thrown
}
