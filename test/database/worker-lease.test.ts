import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const work = defineJob({ kind: 'work', maxAttempts: 3 })

test('jobs that last four times their lease are never reclaimed, with two workers that look for them (B34)', async () => {
  const { tenantry, another, query, quoted } = await createTenantry()
  const leaseMs = 1_500
  const events: string[] = []
  const attempts: number[] = []
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  for (const client of [tenantry, another()]) {
    const worker = client.worker({
      concurrency: 25,
      leaseMs,
      reclaimIntervalMs: 200,
      observe: { leaseLost: ({ jobId }) => events.push(`lost ${jobId}`) },
    })
    worker.handle(work, async (job, { signal }) => {
      attempts.push(job.attempt)
      await released
      signal.throwIfAborted()
    })
    await worker.start()
  }
  await tenantry.enqueueMany(Array.from({ length: 50 }, () => ({ definition: work, payload: null, tenant: 'a' })))
  const heldLongEnough = `select from ${quoted}.lease where expires_at - claimed_at < $1 * interval '1 millisecond'`
  await until(async () => attempts.length === 50 && (await query(heldLongEnough, [leaseMs * 4])).length === 0, {
    until: 'every lease has been extended to four times its length',
  })
  release()
  await until(async () => (await query(`select from ${quoted}.job`)).length === 0, { until: 'all are completed' })
  expect(attempts).toEqual(Array(50).fill(1))
  expect(events).toEqual([])
  expect(await query(`select distinct state, errors from ${quoted}.job_history`)).toEqual([
    { state: 'completed', errors: null },
  ])
})

test('a former owner in the same process can neither settle the job nor keep its lease alive (B27)', async () => {
  const { tenantry, query, quoted } = await createTenantry()
  const events: string[] = []
  const ends: (() => void)[] = []
  const worker = tenantry.worker({
    concurrency: 2,
    leaseMs: 30_000,
    heartbeatMs: 200,
    observe: {
      leaseLost: () => events.push('lost'),
      settle: ({ accepted }) => accepted > 0 && events.push('accepted'),
    },
  })
  const signals: AbortSignal[] = []
  worker.handle(work, async (_, { signal }) => {
    signals.push(signal)
    await new Promise<void>((resolve) => ends.push(resolve))
  })
  const id = await tenantry.enqueue(work, null, { tenant: 'a' })
  await worker.start()
  await until(() => ends.length === 1, { until: 'the first attempt runs' })
  // In one transaction, so that no heartbeat comes in between.
  const expire = `update ${quoted}.lease set expires_at = now() - interval '1 second'`
  await query(`${expire}; select ${quoted}.reclaim_v1(100)`)
  await until(() => ends.length === 2, { until: 'the second attempt runs beside the first' })
  await until(() => events.length === 1, { until: 'the first is told that its lease is lost' })
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  ends[0]?.()
  expect(await tenantry.job(id)).toMatchObject({ state: 'running', attempt: 2 })
  ends[1]?.()
  await until(async () => (await tenantry.job(id))?.state === 'completed', { until: 'the second attempt is completed' })
  expect(events).toEqual(['lost', 'accepted'])
  expect(await tenantry.job(id)).toMatchObject({ attempt: 2 })
})
