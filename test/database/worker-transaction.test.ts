import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { defineJob, LeaseLostError } from '../../src/index.js'
import { createTenantry, type TestTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const pay = defineJob({ kind: 'pay', maxAttempts: 3, retry: { baseMs: 10, jitter: 'none' } })

async function createLedger(created: TestTenantry): Promise<{ ledger: string; entries: () => Promise<string[]> }> {
  const ledger = `${created.quoted}.ledger`
  await created.query(`create table ${ledger} (job text not null)`)
  const entries = async () => {
    const rows = await created.query<{ job: string }>(`select job from ${ledger} order by job::bigint`)
    return rows.map(({ job }) => job)
  }
  return { ledger, entries }
}

test('the writes of a handler and the completion of its job are committed together, exactly once', async () => {
  const created = await createTenantry()
  const { tenantry } = created
  const { ledger, entries } = await createLedger(created)
  const worker = tenantry.worker({ concurrency: 10 })
  worker.handle(pay, async (job, context) => {
    await context.transaction(async (tx) => {
      await tx.query(`insert into ${ledger} values ($1)`, [job.id])
    })
  })
  const ids = await tenantry.enqueueMany(
    Array.from({ length: 50 }, () => ({ definition: pay, payload: null, tenant: 'a' })),
  )
  await worker.start()
  await until(async () => (await entries()).length === 50, { until: 'all payments are entered' })
  await worker.stop()
  expect(await entries()).toEqual(ids)
  expect((await Promise.all(ids.map((id) => tenantry.job(id)))).every((job) => job?.state === 'completed')).toBe(true)
  expect(await created.query(`select from ${created.quoted}.lease`)).toEqual([])
})

test('when the handler fails nothing of its transaction stays, and the attempt is retried', async () => {
  const created = await createTenantry()
  const { tenantry } = created
  const { ledger, entries } = await createLedger(created)
  const worker = tenantry.worker()
  worker.handle(pay, async (job, context) => {
    await context.transaction(async (tx) => {
      await tx.query(`insert into ${ledger} values ($1)`, [job.id])
      if (job.attempt === 1) throw new Error('insufficient funds')
      // A statement whose error the handler swallows must not turn into a success.
      if (job.attempt === 2) await tx.query('select 1/0').catch(() => {})
    })
  })
  const id = await tenantry.enqueue(pay, null, { tenant: 'a' })
  await worker.start()
  const record = await until(
    async () => {
      const found = await tenantry.job(id)
      return found?.state === 'completed' ? found : undefined
    },
    { until: 'the third attempt has succeeded' },
  )
  expect(record.attempt).toBe(3)
  expect(record.errors[0]?.message).toBe('insufficient funds')
  expect(await entries()).toEqual([id])
})

test('a worker that has lost the lease cannot commit its writes (B27)', async () => {
  const created = await createTenantry()
  const { tenantry, query, quoted } = created
  const { ledger, entries } = await createLedger(created)
  const outcomes: string[] = []
  const worker = tenantry.worker({ concurrency: 2, reclaimIntervalMs: 3_600_000 })
  worker.handle(pay, async (job, context) => {
    if (job.attempt === 1) {
      // In one transaction, so that no heartbeat comes in between.
      const expire = `update ${quoted}.lease set expires_at = now() - interval '1 second'`
      await query(`${expire}; select ${quoted}.reclaim_v1(100)`)
    }
    try {
      await context.transaction(async (tx) => {
        await tx.query(`insert into ${ledger} values ($1)`, [job.id])
      })
      outcomes.push(`attempt ${job.attempt} committed`)
    } catch (error) {
      outcomes.push(`attempt ${job.attempt} ${error instanceof LeaseLostError ? 'lost its lease' : error}`)
      throw error
    }
  })
  const id = await tenantry.enqueue(pay, null, { tenant: 'a' })
  await worker.start()
  await until(async () => (await tenantry.job(id))?.state === 'completed', { until: 'the second attempt is completed' })
  expect(outcomes).toEqual(['attempt 1 lost its lease', 'attempt 2 committed'])
  expect(await entries()).toEqual([id])
})

test('a connection that breaks in the transaction rolls back, and the attempt is retried', async () => {
  const created = await createTenantry()
  const { tenantry, query } = created
  const { ledger, entries } = await createLedger(created)
  const worker = tenantry.worker()
  worker.handle(pay, async (job, context) => {
    await context.transaction(async (tx) => {
      await tx.query(`insert into ${ledger} values ($1)`, [job.id])
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      if (job.attempt === 1) await query('select pg_terminate_backend($1)', [rows[0]?.pid])
    })
  })
  const id = await tenantry.enqueue(pay, null, { tenant: 'a' })
  await worker.start()
  await until(async () => (await tenantry.job(id))?.state === 'completed', { until: 'the second attempt is completed' })
  expect((await tenantry.job(id))?.attempt).toBe(2)
  expect(await entries()).toEqual([id])
})

test('handlers that hold every connection of the pool starve neither heartbeats nor outcomes (B74)', async () => {
  const created = await createTenantry()
  const { another, query, quoted } = created
  const { ledger, entries } = await createLedger(created)
  const pool = new pg.Pool({ connectionString: created.connectionString, max: 1 })
  onTestFinished(() => pool.end())
  const lost: string[] = []
  const client = another({ pool, connection: { connectionString: created.connectionString } })
  const worker = client.worker({
    concurrency: 6,
    leaseMs: 1_500,
    observe: { leaseLost: ({ jobId }) => lost.push(jobId) },
  })
  const extended = async () => {
    const [lease] = await query<{ beats: number }>(
      `select extract(epoch from max(expires_at - claimed_at)) * 1000 - 1500 as beats from ${quoted}.lease`,
    )
    return Number(lease?.beats ?? 0)
  }
  worker.handle(pay, async (job, context) => {
    await context.transaction(async (tx) => {
      await tx.query(`insert into ${ledger} values ($1)`, [job.id])
      // Keeps the pool's only connection well beyond the lease of the jobs that wait for it.
      if (job.payload === 'first') await until(async () => (await extended()) > 3_000, { until: 'many beats' })
    })
  })
  await client.enqueue(pay, 'first', { tenant: 'a' })
  for (let count = 0; count < 5; count += 1) await client.enqueue(pay, 'other', { tenant: 'a' })
  await worker.start()
  await until(async () => (await entries()).length === 6, { until: 'all are entered' })
  await worker.stop()
  expect(lost).toEqual([])
  expect(await query(`select distinct state, attempt::int from ${quoted}.job_history`)).toEqual([
    { state: 'completed', attempt: 1 },
  ])
  await pool.query('select 1') // the application's pool is still open (B86)
})
