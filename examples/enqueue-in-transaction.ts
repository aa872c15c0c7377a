// A job that exists if and only if the business row does.
import pg from 'pg'
import { defineJob, Tenantry } from 'tenantry'

const sendReceipt = defineJob({ kind: 'send-receipt' })

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const tenantry = new Tenantry({ pool }) // shares the application's pool, and never ends it
await tenantry.migrate()
await pool.query('create table if not exists payment (id bigint generated always as identity, cents bigint not null)')

/** Records a payment and the job that follows from it. */
async function pay(cents: number, outcome: 'commit' | 'rollback'): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query('insert into payment (cents) values ($1) returning id', [cents])
    await tenantry.enqueue(sendReceipt, { paymentId: rows[0].id }, { tenant: 'acme', transaction: client })
    await client.query(outcome)
  } finally {
    client.release()
  }
}

async function count(): Promise<string> {
  const { rows } = await pool.query("select count(*)::int as jobs from tenantry.job where kind = 'send-receipt'")
  return rows[0].jobs === 1 ? '1 job' : `${rows[0].jobs} jobs`
}

await pay(1_999, 'commit')
console.log(`after the commit: ${await count()}`)
await pay(2_999, 'rollback')
console.log(`after the rollback: ${await count()}`)

await tenantry.close()
await pool.end()
