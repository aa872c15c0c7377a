// A handler for several jobs at once, where one statement can do the work of many.
import pg from 'pg'
import { defineJob, Tenantry } from 'tenantry'
import { z } from 'zod'

const track = defineJob({ kind: 'track', payload: z.object({ page: z.string() }) })

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const tenantry = new Tenantry({ pool })
await tenantry.migrate()
await pool.query('create table if not exists page_view (page text not null)')
await tenantry.enqueueMany(
  Array.from({ length: 20 }, (_, number) => ({
    definition: track,
    payload: { page: `/${number}` },
    tenant: `t${number % 4}`,
  })),
)

const worker = tenantry.worker({ concurrency: 20 })
const finished = new Promise<void>((resolve) => {
  let rows = 0
  worker.handleBatch(track, { size: 10, waitMs: 50 }, async (jobs) => {
    await pool.query('insert into page_view (page) select unnest($1::text[])', [jobs.map((job) => job.payload.page)])
    rows += jobs.length
    console.log(`wrote ${rows} rows`)
    if (rows === 20) resolve()
    // To return nothing completes all of them; an array or a map of results tells them apart.
  })
})
await worker.start()
await finished

await tenantry.close() // stops the worker too
await pool.end()
