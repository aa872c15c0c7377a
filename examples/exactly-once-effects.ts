// A handler whose writes are committed together with the completion of its job: a retry cannot repeat them.
import pg from 'pg'
import { defineJob, Tenantry } from 'tenantry'

const recordPayment = defineJob({ kind: 'record-payment', retry: { baseMs: 10 } })

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const tenantry = new Tenantry({ pool })
await tenantry.migrate()
await pool.query('create table if not exists booking (job_id text not null, attempt int not null)')
const id = await tenantry.enqueue(recordPayment, {}, { tenant: 'acme' })

const worker = tenantry.worker()
worker.handle(recordPayment, async (job, context) => {
  await context.transaction(async (tx) => {
    await tx.query('insert into booking (job_id, attempt) values ($1, $2)', [job.id, job.attempt])
    if (job.attempt === 1) throw new Error('the first attempt fails after its write')
  })
  // The job is completed here, or the transaction has thrown.
})
await worker.start()

// Asks until the job has been settled; an application would do something better with its time.
let record = await tenantry.job(id)
while (record?.state !== 'completed') {
  await new Promise((resolve) => setTimeout(resolve, 20))
  record = await tenantry.job(id)
}
const { rows } = await pool.query('select attempt from booking where job_id = $1', [id])
console.log(`attempts: ${record.attempt}, payments: ${rows.length}`)

await tenantry.close() // stops the worker too
await pool.end()
