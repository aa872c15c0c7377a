import { expect, onTestFinished, test } from 'vitest'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { defineJob, Tenantry } from '../../src/index.js'
import { until } from '../support/until.js'

const work = defineJob({ kind: 'work' })

test.each(['fast', 'immediate'] as const)(
  'after a %s restart of the server the worker is seen again, and its numbers go on',
  async (mode) => {
    const server = await EmbeddedServer.start()
    onTestFinished(() => server.stop('immediate'))
    const tenantry = new Tenantry({ connectionString: server.connectionString })
    onTestFinished(() => tenantry.close())
    await tenantry.migrate()
    const worker = tenantry.worker()
    worker.handle(work, async () => {})
    await worker.start()
    const isSeen = async () => (await tenantry.queues().catch(() => []))[0]?.workers === 1
    await until(isSeen, { until: 'the worker is seen' })
    await server.restart(mode)
    // After a crash the tables of the numbers are empty: they are not worth a write-ahead log.
    await until(isSeen, { until: 'the worker is seen again' })
    await tenantry.enqueue(work, null, { tenant: 'a' })
    const counted = async () => (await tenantry.tenants().catch(() => []))[0]?.completed === 1
    await until(counted, { until: 'the job is counted' })
    await worker.stop()
    expect((await tenantry.queues())[0]?.workers).toBe(0)
  },
)
