import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { defineJob } from '../../src/index.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const work = defineJob({ kind: 'work' })

test('a finished job whose row somebody has locked holds up no other, and is settled once it is free', async () => {
  const { tenantry, query, quoted, connectionString } = await createTenantry()
  const worker = tenantry.worker({ concurrency: 10 })
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  let running = 0
  worker.handle(work, async () => {
    running += 1
    await finished
  })
  const ids = await tenantry.enqueueMany(
    Array.from({ length: 3 }, () => ({ definition: work, payload: null, tenant: 'a' })),
  )
  await worker.start()
  await until(() => running === 3, { until: 'all jobs run' })
  const stranger = new pg.Client({ connectionString })
  await stranger.connect()
  onTestFinished(() => stranger.end())
  await stranger.query('begin')
  await stranger.query(`select from ${quoted}.job where id = $1 for update`, [ids[0]])
  finish()
  await until(async () => (await query(`select from ${quoted}.job`)).length === 1, { until: 'the others are settled' })
  expect((await tenantry.job(ids[0] ?? ''))?.state).toBe('running')
  await stranger.query('rollback')
  await worker.stop()
  expect((await tenantry.job(ids[0] ?? ''))?.state).toBe('completed')
  expect(await query(`select from ${quoted}.lease`)).toEqual([])
})
