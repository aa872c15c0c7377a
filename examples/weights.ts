// Two tenants with a backlog, one of which pays for four times the share.
import { defineJob, Tenantry } from 'tenantry'

const resize = defineJob({ kind: 'resize' })

const tenantry = new Tenantry({ connectionString: process.env.DATABASE_URL })
await tenantry.migrate()
await tenantry.configureTenant('default', 'gold', { weight: 4 })

for (const tenant of ['free', 'gold']) {
  await tenantry.enqueueMany(Array.from({ length: 100 }, () => ({ definition: resize, payload: {}, tenant })))
}

// One job at a time, so that the order of the starts is the order of the claims.
const worker = tenantry.worker({ concurrency: 1 })
const started: string[] = []
const finished = new Promise<void>((resolve) => {
  worker.handle(resize, async (job) => {
    started.push(job.tenant)
    if (started.length === 200) resolve()
  })
})
await worker.start()
await finished

const first = started.slice(0, 50)
const of = (tenant: string) => first.filter((each) => each === tenant).length
console.log(`of the first ${first.length} jobs, gold had ${of('gold')} and free had ${of('free')}`)

await tenantry.close() // stops the worker too
