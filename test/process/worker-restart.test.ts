import { expect, onTestFinished, test } from 'vitest'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { defineJob, Tenantry } from '../../src/index.js'
import { until } from '../support/until.js'

const work = defineJob({ kind: 'work', maxAttempts: 20 })

/** A server of its own, since it will be restarted. The application adds no error listeners of any kind. */
async function setUp() {
  const server = await EmbeddedServer.start()
  onTestFinished(() => server.stop('immediate'))
  const tenantry = new Tenantry({ connectionString: server.connectionString })
  onTestFinished(() => tenantry.close())
  await tenantry.migrate()
  const completed = async (id: string) => (await tenantry.job(id))?.state === 'completed'
  return { server, tenantry, completed }
}

test('a worker survives every restart of the database, with the jobs that run meanwhile (B75)', async () => {
  const { server, tenantry, completed } = await setUp()
  const started = new Set<unknown>()
  let restarted = Promise.resolve()
  const worker = tenantry.worker()
  worker.handle(work, async (job) => {
    started.add(job.payload)
    await restarted
  })
  await worker.start()
  for (const [round, mode] of (['fast', 'immediate', 'fast'] as const).entries()) {
    let end = () => {}
    restarted = new Promise((resolve) => {
      end = resolve
    })
    const during = await tenantry.enqueue(work, `during ${round}`, { tenant: 'a' })
    await until(() => started.has(`during ${round}`), { until: 'a job runs' })
    await server.restart(mode)
    end()
    await until(() => completed(during), { until: 'the job that ran during the restart is completed' })
    const after = await tenantry.enqueue(work, null, { tenant: 'a' })
    await until(() => completed(after), { until: 'a job that was enqueued after the restart is completed' })
    // A crash may undo a claim, which does not wait for the disk: then the job runs again, and that counts.
    if (mode === 'fast') expect((await tenantry.job(during))?.attempt).toBe(1)
  }
  expect(worker.status()).toMatchObject({ state: 'running', running: 0, unsettled: 0 })
})

test('to stop while the database is gone for good ends, and says what could not be written (B86)', async () => {
  const { server, tenantry } = await setUp()
  let release = () => {}
  const worker = tenantry.worker()
  const running = new Promise<void>((started) => {
    worker.handle(work, () => {
      started()
      return new Promise<void>((resolve) => {
        release = resolve
      })
    })
  })
  await tenantry.enqueue(work, null, { tenant: 'a' })
  await worker.start()
  await running
  await server.stop('immediate')
  const stopping = worker.stop()
  release()
  await stopping
  expect(worker.status()).toMatchObject({ state: 'stopped', running: 0, unsettled: 1 })
})

test('a worker waits for a database that is just restarting, and does not start on one that is gone (B75)', async () => {
  const { server, tenantry } = await setUp()
  const create = () => {
    const worker = tenantry.worker()
    worker.handle(work, async () => {})
    return worker
  }
  const restarting = server.restart('fast')
  const worker = create()
  await worker.start()
  expect(worker.status().state).toBe('running')
  await restarting
  await worker.stop()
  await server.stop('fast')
  await expect(create().start()).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
})
