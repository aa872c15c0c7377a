import { expect, onTestFinished, test } from 'vitest'
import { defineJob, type WorkerOptions } from '../../src/index.js'
import { LimitWatch } from '../support/limits.js'
import { createTenantry, type TestTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.js'

/** What its handlers do in the worker processes is told by the payload. */
const job = defineJob({ kind: 'process' })

const PROCESSES = 8
const KILLS = 30
/** Longer than a test lasts: whatever starts was told of. */
const NEVER_POLLS = { pollMinMs: 120_000, pollMaxMs: 120_000 }
const LIMITS = { tenants: { limited: 3 }, kinds: { process: 8 }, keys: { k: 1 } }

interface Fixture extends TestTenantry {
  start(worker?: WorkerOptions): WorkerProcess
  enqueue(payload: string, count: number, options: { readonly tenant: string; readonly key?: string }): Promise<unknown>
  left(): Promise<number>
  running(tenant: string): Promise<number>
  watch(): LimitWatch
}

async function setUp(): Promise<Fixture> {
  const created = await createTenantry()
  const { tenantry, query, quoted, connectionString, schema } = created
  const count = async (where: string, values: readonly unknown[] = []) => {
    const [row] = await query<{ count: number }>(`select count(*)::int from ${quoted}.job ${where}`, values)
    return row?.count ?? Number.NaN
  }
  return {
    ...created,
    start: (worker = {}) => startWorkerProcess({ connectionString, schema, worker }),
    enqueue: (payload, jobs, options) =>
      tenantry.enqueueMany(
        Array.from({ length: jobs }, () => ({ definition: job, payload, maxAttempts: 100, ...options })),
      ),
    left: () => count(''),
    running: (tenant) => count(`where state = 'running' and tenant = $1`, [tenant]),
    watch: () => {
      const session = {
        run: <Row>(text: string, values?: readonly unknown[]) => query<Row>(text.replaceAll(':schema', quoted), values),
      }
      const watch = new LimitWatch(session, 'default', LIMITS)
      onTestFinished(async () => void (await watch.stop()))
      return watch
    },
  }
}

async function limit({ tenantry }: TestTenantry): Promise<void> {
  await tenantry.configureTenant('default', 'limited', { concurrency: LIMITS.tenants.limited })
  await tenantry.configureKind('default', 'process', { concurrency: LIMITS.kinds.process })
}

/** Retries wait for up to minutes, which is not what these tests are about. */
async function drain(fixture: Fixture): Promise<void> {
  const due = `update ${fixture.quoted}.job set run_at = now() where state = 'scheduled'`
  await until(
    async () => {
      await fixture.query(due)
      return (await fixture.left()) === 0
    },
    {
      until: 'all jobs have ended',
      deadlineMs: 50_000,
    },
  )
}

/** As many as the limit allows run when many more could, and when another worker asks. */
async function expectExactly(fixture: Fixture, workers: readonly WorkerProcess[]): Promise<void> {
  await fixture.enqueue('waits for a message', 10, { tenant: 'limited' })
  await until(async () => (await fixture.running('limited')) === 3, { until: 'three run' })
  await fixture.query(
    `select ${fixture.quoted}.claim_v1('default', gen_random_uuid(), 'w', '{process}', 20, 60000, false)`,
  )
  expect(await fixture.running('limited')).toBe(3)
  for (const worker of workers) worker.process.send('go on')
}

test('no limit is exceeded by eight processes, of which thirty are killed, and none drifts (B06)', async () => {
  const fixture = await setUp()
  await limit(fixture)
  const options = { concurrency: 6, leaseMs: 1_000, reclaimIntervalMs: 250 }
  const workers = Array.from({ length: PROCESSES }, () => fixture.start(options))
  const watch = fixture.watch()
  let killed = 0
  while (killed < KILLS) {
    for (const worker of workers) await worker.reported('ready')
    await fixture.enqueue('takes a moment', 12, { tenant: 'limited' })
    await fixture.enqueue('takes a moment', 12, { tenant: 'other' })
    await fixture.enqueue('takes a moment', 4, { tenant: 'third', key: 'k' })
    await until(async () => (await fixture.running('limited')) > 0, { until: 'some run' })
    for (let n = 0; n < 6; n += 1, killed += 1) {
      // At a random point: nobody knows where each of them is just now.
      workers[(killed * 3) % PROCESSES]?.process.kill('SIGKILL')
      workers[(killed * 3) % PROCESSES] = fixture.start(options)
    }
    if (killed % 2 === 0) await cutConnections(fixture)
  }
  await drain(fixture)
  expect(await watch.stop()).toBeGreaterThan(100)
  expect(watch.breaches).toEqual([])
  const [lost] = await fixture.query<{ jobs: number }>(
    `select count(*)::int as jobs from ${fixture.quoted}.job_history where attempt > 1`,
  )
  expect(lost?.jobs, 'jobs that a killed process held').toBeGreaterThan(5)
  await expectExactly(fixture, workers)
})

/** As an operator would, or a fail-over: a worker's connection breaks in the middle of something. */
async function cutConnections({ query, schema }: Fixture): Promise<void> {
  await query(
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query like $1 and query like '%claim%' limit 3`,
    [`%${schema}%`],
  )
}

test('a process that is stopped past its lease frees its slots once, and its late end changes nothing (B07)', async () => {
  const fixture = await setUp()
  await limit(fixture)
  const options = { concurrency: 4, leaseMs: 1_000, reclaimIntervalMs: 250, pollMaxMs: 200 }
  const [frozen, other] = [fixture.start(options), fixture.start(options)]
  for (const worker of [frozen, other]) await worker.reported('ready')
  const watch = fixture.watch()
  for (let n = 0; n < 4; n += 1) {
    await fixture.enqueue('takes a moment', 15, { tenant: 'limited' })
    await fixture.enqueue('takes a moment', 5, { tenant: 'third', key: 'k' })
    await until(async () => (await fixture.running('limited')) > 0, { until: 'some run' })
    frozen.process.kill('SIGSTOP')
    await drain(fixture)
    frozen.process.kill('SIGCONT')
  }
  await watch.stop()
  expect(watch.breaches).toEqual([])
  await expectExactly(fixture, [frozen, other])
})

test('each end starts the next job at once, though workers would not look again for two minutes (B09)', async () => {
  const fixture = await setUp()
  await fixture.tenantry.configureTenant('default', 'limited', { concurrency: 1 })
  await fixture.enqueue('takes a moment', 50, { tenant: 'limited' })
  const workers = [
    fixture.start({ ...NEVER_POLLS, concurrency: 10 }),
    fixture.start({ ...NEVER_POLLS, concurrency: 10 }),
  ]
  for (const worker of workers) await worker.reported('ready')
  await until(async () => (await fixture.left()) === 0, { until: 'all have run', deadlineMs: 50_000 })
  const [attempts] = await fixture.query<{ most: number }>(
    `select max(attempt)::int as most from ${fixture.quoted}.job_history`,
  )
  expect(attempts?.most).toBe(1)
})

test.each(['tenant', 'key', 'kind', 'queue'])(
  'a job that is enqueued just when the last one ends is not forgotten; limit of a %s (B09)',
  async (scope) => {
    const fixture = await setUp()
    const { tenantry } = fixture
    if (scope === 'tenant') await tenantry.configureTenant('default', 'limited', { concurrency: 1 })
    if (scope === 'kind') await tenantry.configureKind('default', 'process', { concurrency: 1 })
    if (scope === 'queue') await tenantry.configureQueue('default', { concurrency: 1 })
    const given = { tenant: 'limited', ...(scope === 'key' && { key: 'k' }) }
    const enqueued: Promise<unknown>[] = []
    let rounds = 0
    for (const at of ['one', 'other']) {
      const worker = fixture.another().worker({ ...NEVER_POLLS, concurrency: 4 })
      worker.handle(job, () => {
        rounds += 1
        // It arrives about when this one is settled, by this worker or by the other one.
        if (rounds < 150) enqueued.push(tenantry.enqueue(job, at, given))
      })
      onTestFinished(() => worker.stop())
      await worker.start()
    }
    await fixture.enqueue('first', 3, given)
    await until(async () => rounds >= 150 && (await fixture.left()) === 0, {
      until: 'all have run',
      deadlineMs: 50_000,
    })
    await Promise.all(enqueued)
  },
)
