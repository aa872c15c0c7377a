import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { defineJob, type Tenantry } from '../../src/index.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { createTenantry, type TestTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

/** Longer than any test waits: what happens has the cause that the test gave. */
const NEVER_MS = 120_000
const noPolls = { pollMinMs: NEVER_MS, pollMaxMs: NEVER_MS, reclaimIntervalMs: NEVER_MS }

const work = defineJob({ kind: 'work', maxAttempts: 3, retry: { baseMs: 10, jitter: 'none' } })

const completed = async (tenantry: Tenantry, id: string) => (await tenantry.job(id))?.state === 'completed'

function withApplicationName(connectionString: string, name: string): string {
  const url = new URL(connectionString)
  url.searchParams.set('application_name', name)
  return url.href
}

/** A client whose worker reaches the database through a proxy, except for notifications. */
async function createProxied(created: TestTenantry) {
  const proxy = await TcpProxy.to(created.connectionString)
  const client = created.another({ connectionString: proxy.url, listenConnectionString: created.connectionString })
  return { proxy, client }
}

test('a claim whose reply is lost is found again by its lease id, and its jobs run once (B04)', async () => {
  const created = await createTenantry()
  const { tenantry, query, quoted } = created
  const { proxy, client } = await createProxied(created)
  await using _ = proxy
  const attempts: number[] = []
  const worker = client.worker(noPolls)
  worker.handle(work, async (job) => {
    attempts.push(job.attempt)
  })
  await worker.start()
  // A start makes one claim or two, the second when notifications are connected: none must be under way below.
  await until(() => (worker.status().lastClaimAgoMs ?? 0) > 300, { until: 'the worker is idle' })
  proxy.dropReplies()
  const id = await tenantry.enqueue(work, null, { tenant: 'a' })
  const running = async () => (await query(`select from ${quoted}.job where state = 'running'`)).length === 1
  await until(running, { until: 'the claim is committed' })
  expect(attempts).toEqual([])
  proxy.cut()
  await until(() => completed(tenantry, id), { until: 'the job is completed' })
  expect(attempts).toEqual([1])
})

test('an outcome whose reply is lost is sent again, and neither counted twice nor called lost (B04)', async () => {
  const created = await createTenantry()
  const { tenantry } = created
  const { proxy, client } = await createProxied(created)
  await using _ = proxy
  const events: string[] = []
  const worker = client.worker({
    ...noPolls,
    observe: {
      settle: ({ accepted, lost, unconfirmed }) => events.push(`${accepted} ${lost} ${unconfirmed}`),
      leaseLost: () => events.push('lease lost'),
    },
  })
  worker.handle(work, async () => {
    proxy.dropReplies()
  })
  const id = await tenantry.enqueue(work, null, { tenant: 'a' })
  await worker.start()
  await until(() => completed(tenantry, id), { until: 'the job is completed' })
  expect(events).toEqual([])
  proxy.cut()
  await until(() => events.length > 0, { until: 'the outcome is sent again' })
  expect(events).toEqual(['0 0 1'])
})

test('a listener whose session is ended listens again and looks for what it missed (B71)', async () => {
  const { another, query, connectionString } = await createTenantry()
  const listener = `listener ${randomUUID()}`
  const listenConnectionString = withApplicationName(connectionString, listener)
  const client = another({ connectionString, listenConnectionString })
  const runs: unknown[] = []
  const worker = client.worker(noPolls)
  worker.handle(work, async (job) => {
    runs.push(job.payload)
  })
  await worker.start()
  const sessions = 'from pg_stat_activity where application_name = $1'
  for (let round = 0; round < 3; round += 1) {
    await until(async () => (await query(`select ${sessions}`, [listener])).length === 1, {
      until: 'a session listens',
    })
    await query(`select pg_terminate_backend(pid) ${sessions}`, [listener])
    await client.enqueue(work, round, { tenant: 'a' })
    await until(() => runs.length === round + 1, { until: `job ${round} has run` })
  }
  expect(runs).toEqual([0, 1, 2])
})

test('sessions that are ended again and again delay the work but end it nowhere (B72)', async () => {
  const { tenantry, another, query, quoted, connectionString } = await createTenantry()
  const applicationName = `victim ${randomUUID()}`
  const client = another({ connectionString: withApplicationName(connectionString, applicationName) })
  const ended = new Set<string>()
  const worker = client.worker({ concurrency: 10, leaseMs: 5_000 })
  worker.handle(work, async (job) => {
    await new Promise((resolve) => setImmediate(resolve))
    ended.add(job.id)
  })
  const jobs = Array.from({ length: 400 }, () => ({ definition: work, payload: null, tenant: 'a', maxAttempts: 50 }))
  const ids = await tenantry.enqueueMany(jobs)
  await worker.start()
  const left = async () => (await query(`select from ${quoted}.job`)).length
  for (let kills = 0; kills < 15; kills += 1) {
    const before = await left()
    await query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [applicationName])
    await until(async () => (await left()) < before || before === 0, { until: 'more jobs are completed' })
  }
  await until(async () => (await left()) === 0, { until: 'all jobs are completed' })
  expect([...ended].toSorted()).toEqual(ids.toSorted())
  expect(await query(`select state, count(*)::int from ${quoted}.job_history group by state`)).toEqual([
    { state: 'completed', count: 400 },
  ])
})

test('a table that is missing for a while stops the work only for that while (B72)', async () => {
  const { tenantry, query, quoted } = await createTenantry()
  const errors: unknown[] = []
  const releases: (() => void)[] = []
  const worker = tenantry.worker({ observe: { error: (error) => errors.push(error) } })
  worker.handle(work, () => new Promise<void>((resolve) => releases.push(resolve)))
  const enqueue = () => tenantry.enqueue(work, null, { tenant: 'a' })
  const first = await enqueue()
  await worker.start()
  await until(() => releases.length === 1, { until: 'the first job runs' })
  await query(`alter table ${quoted}.job rename to job_elsewhere`)
  releases[0]?.()
  await until(() => errors.length >= 3, { until: 'several statements have failed' })
  await query(`alter table ${quoted}.job_elsewhere rename to job`)
  await until(() => completed(tenantry, first), { until: 'the outcome of the first job is written' })
  const second = await enqueue()
  await until(() => releases.length === 2, { until: 'the second job runs' })
  releases[1]?.()
  await until(() => completed(tenantry, second), { until: 'the second job is completed' })
  expect(errors[0]).toMatchObject({ code: 'MIGRATION_REQUIRED' })
})

test('a worker on a database that does not exist does not start and says which (B75)', async () => {
  const { another, connectionString } = await createTenantry()
  const url = new URL(connectionString)
  url.pathname = '/no_such_database'
  const worker = another({ connectionString: url.href }).worker()
  worker.handle(work, async () => {})
  await expect(worker.start()).rejects.toThrow('no_such_database')
})

test('handlers may enqueue while the worker drains (B86)', async () => {
  const { tenantry } = await createTenantry()
  const follow = defineJob({ kind: 'follow' })
  const worker = tenantry.worker()
  let release = () => {}
  const running = new Promise<void>((resolve) => {
    worker.handle(work, async (_, context) => {
      resolve()
      await new Promise<void>((done) => {
        release = done
      })
      await tenantry.enqueue(follow, 'in the drain', { tenant: 'a' })
      context.log.info('enqueued')
    })
  })
  const id = await tenantry.enqueue(work, null, { tenant: 'a' })
  await worker.start()
  await running
  const stopping = worker.stop()
  release()
  await stopping
  expect(await completed(tenantry, id)).toBe(true)
  expect(await tenantry.job(String(Number(id) + 1))).toMatchObject({ kind: 'follow', state: 'available' })
})

test('jobs given back at the shutdown run at once on another worker (B87)', async () => {
  const { tenantry, another } = await createTenantry()
  const starts: string[] = []
  const create = (name: string) => {
    const worker = another().worker({ shutdownTimeoutMs: 100, leaseMs: 600_000 })
    worker.handle(work, async (job, { signal }) => {
      starts.push(`${name} ${job.payload} ${job.attempt}`)
      if (name === 'second') return
      // One obeys its signal, the other does not.
      await new Promise((resolve) => job.payload === 'obeys' && signal.addEventListener('abort', resolve))
      throw signal.reason
    })
    return worker
  }
  const [first, second] = [create('first'), create('second')]
  const ids = [
    await tenantry.enqueue(work, 'obeys', { tenant: 'a' }),
    await tenantry.enqueue(work, 'ignores', { tenant: 'a' }),
  ]
  await first.start()
  await until(() => starts.length === 2, { until: 'both run on the first worker' })
  await second.start()
  await first.stop()
  await until(async () => (await Promise.all(ids.map((id) => completed(tenantry, id)))).every(Boolean), {
    until: 'both are completed by the second worker',
  })
  expect(starts.slice(2).toSorted()).toEqual(['second ignores 1', 'second obeys 1'])
})
