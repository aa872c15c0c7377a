import { expect, onTestFinished, test } from 'vitest'
import { defineJob, type WorkerOptions } from '../../src/index.js'
import { createTenantry, type TestTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.js'

/** What its handlers do in the worker processes is told by the payload. */
const job = defineJob({ kind: 'process' })

interface Fixture extends TestTenantry {
  start(options?: WorkerOptions): WorkerProcess
  enqueue(payload: string, options?: { readonly tenant?: string; readonly maxAttempts?: number }): Promise<string>
  /** The job once it is completed or discarded. */
  settled(
    id: string,
  ): Promise<{ readonly state: string; readonly attempt: number; readonly errors: readonly unknown[] }>
  /** Waits until the leases have been extended this far beyond their claim. */
  heldFor(ms: number): Promise<unknown>
}

async function setUp(): Promise<Fixture> {
  const created = await createTenantry()
  const { tenantry, query, quoted, connectionString, schema } = created
  const held = `select from ${quoted}.lease where expires_at - claimed_at > $1 * interval '1 millisecond'`
  return {
    ...created,
    start: (worker = {}) => startWorkerProcess({ connectionString, schema, worker }),
    enqueue: (payload, options = {}) => tenantry.enqueue(job, payload, { tenant: 'a', maxAttempts: 3, ...options }),
    settled: (id) =>
      until(
        async () => {
          const record = await tenantry.job(id)
          return record && ['completed', 'discarded'].includes(record.state) ? record : undefined
        },
        { until: `job ${id} is settled` },
      ),
    heldFor: (ms) =>
      until(async () => (await query(held, [ms])).length > 0, { until: `a lease has been held for ${ms} ms` }),
  }
}

/** A worker in this process that completes whatever comes. */
async function startRescuer({ another }: TestTenantry): Promise<readonly string[]> {
  const runs: string[] = []
  const worker = another().worker({ reclaimIntervalMs: 500 })
  worker.handle(job, async ({ payload, attempt }) => {
    runs.push(`${payload} ${attempt}`)
  })
  onTestFinished(() => worker.stop())
  await worker.start()
  return runs
}

test('SIGTERM lets running handlers finish, claims nothing more, and the process ends with 0 (B85)', async () => {
  const { start, enqueue, settled, heldFor, tenantry } = await setUp()
  const ids = [await enqueue('waits for a message'), await enqueue('waits for a message')]
  const worker = start({ leaseMs: 1_500 })
  await until(() => worker.reports.filter(([what]) => what === 'started').length === 2, { until: 'both run' })
  worker.process.kill('SIGTERM')
  await worker.reported('stopping')
  const late = await enqueue('returns at once')
  await heldFor(4_500)
  worker.process.send('go on')
  expect(await worker.ended).toBe(0)
  const order = worker.reports.map(([what]) => what)
  expect(order.slice(order.indexOf('stopping'))).toEqual(['stopping', 'ended', 'ended', 'stopped'])
  for (const id of ids) expect(await settled(id)).toMatchObject({ state: 'completed', attempt: 1 })
  expect(await tenantry.job(late)).toMatchObject({ state: 'available', attempt: 0 })
})

test('handlers that outlast the deadline are aborted, their jobs go back, and the process ends (B87)', async () => {
  const { start, enqueue, tenantry } = await setUp()
  const ids = [await enqueue('waits for its signal'), await enqueue('ignores everything')]
  const worker = start({ shutdownTimeoutMs: 200, leaseMs: 600_000 })
  await worker.reported('started', 'waits for its signal')
  await worker.reported('started', 'ignores everything')
  worker.process.kill('SIGINT')
  expect(await worker.ended).toBe(1)
  expect(worker.reports.at(-1)).toEqual(['stopped'])
  for (const id of ids) expect(await tenantry.job(id)).toMatchObject({ state: 'available', attempt: 0 })
})

test('a second signal ends the process at once with 128 and its number', async () => {
  const { start, enqueue } = await setUp()
  await enqueue('ignores everything')
  const worker = start()
  await worker.reported('started', 'ignores everything')
  worker.process.kill('SIGTERM')
  await worker.reported('stopping')
  worker.process.kill('SIGTERM')
  expect(await worker.ended).toBe(143)
})

test('a stopped worker leaves nothing that keeps its process alive (B86)', async () => {
  const { start, enqueue, settled } = await setUp()
  const worker = start()
  await worker.reported('ready')
  await settled(await enqueue('returns at once'))
  worker.process.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
})

test('the jobs of a killed process run on another worker when their lease has expired', async () => {
  const fixture = await setUp()
  const { start, enqueue, settled } = fixture
  const worker = start({ leaseMs: 1_000 })
  const id = await enqueue('ignores everything')
  await worker.reported('started', 'ignores everything', 1)
  worker.process.kill('SIGKILL')
  const runs = await startRescuer(fixture)
  expect(await settled(id)).toMatchObject({
    state: 'completed',
    attempt: 2,
    errors: [{ attempt: 1, name: 'LeaseExpired' }],
  })
  expect(runs).toEqual(['ignores everything 2'])
})

test.each(['exits', 'aborts'])(
  'a job whose handler %s kills its process as often as it may be attempted and no more (B30)',
  async (poison) => {
    const { start, enqueue, settled } = await setUp()
    const innocents: string[] = []
    for (let count = 0; count < 30; count += 1) {
      innocents.push(await enqueue('returns at once', { tenant: 'b', maxAttempts: 20 }))
    }
    const poisoned = await enqueue(poison, { maxAttempts: 2 })
    // The supervisor: whatever dies is started again, until everything is settled.
    const settling = Promise.all([poisoned, ...innocents].map(settled))
    let over = false
    const isOver = settling.then(() => {
      over = true
    })
    let deaths = 0
    while (!over) {
      const worker = start({ concurrency: 10, leaseMs: 1_000, reclaimIntervalMs: 500 })
      const end = await Promise.race([worker.ended, isOver])
      if (end !== undefined) deaths += 1
    }
    const [record, ...others] = await settling
    expect(new Set(others.map(({ state }) => state))).toEqual(new Set(['completed']))
    expect(record).toMatchObject({ state: 'discarded', attempt: 2 })
    expect(record?.errors.at(-1)).toMatchObject({ name: 'LeaseExpired' })
    expect(deaths).toBe(2)
  },
)

test('a process that was paused beyond its lease is told, and cannot settle what runs elsewhere now (B27)', async () => {
  const fixture = await setUp()
  const { start, enqueue, settled } = fixture
  const worker = start({ leaseMs: 1_000 })
  const id = await enqueue('waits for a message')
  await worker.reported('started', 'waits for a message', 1)
  worker.process.kill('SIGSTOP')
  const runs = await startRescuer(fixture)
  expect(await settled(id)).toMatchObject({ state: 'completed', attempt: 2 })
  worker.process.kill('SIGCONT')
  await worker.reported('lost', id)
  worker.process.send('go on')
  await worker.reported('ended', 'waits for a message', 1)
  worker.process.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(runs).toEqual(['waits for a message 2'])
  expect(await settled(id)).toMatchObject({ state: 'completed', attempt: 2 })
})

test('a handler that blocks the event loop beyond its lease runs again elsewhere, counts once, and is named (B31)', async () => {
  const fixture = await setUp()
  const { start, enqueue, settled, query, quoted } = fixture
  const worker = start({ leaseMs: 1_000 })
  await worker.reported('ready')
  const neighbours = await Promise.all(Array.from({ length: 3 }, () => enqueue('waits for a message')))
  await until(() => worker.reports.filter(([what]) => what === 'started').length === 3, { until: 'the neighbours run' })
  const blocking = await enqueue('blocks')
  await worker.reported('started', 'blocks', 1)
  const runs = await startRescuer(fixture)
  for (const id of [...neighbours, blocking])
    expect(await settled(id)).toMatchObject({ state: 'completed', attempt: 2 })
  for (const id of [...neighbours, blocking]) await worker.reported('lost', id)
  worker.process.send('go on')
  await until(() => worker.log.some((line) => line.includes('event loop was blocked')), { until: 'it is named' })
  worker.process.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(runs).toHaveLength(4)
  expect(await query(`select state, count(*)::int from ${quoted}.job_history group by state`)).toEqual([
    { state: 'completed', count: 4 },
  ])
})
