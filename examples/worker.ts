// A program that is a worker: it drains on SIGTERM or SIGINT. Shows every way in which an attempt may end.
import { defineJob, Tenantry } from 'tenantry'
import { z } from 'zod'

const sendInvoice = defineJob({
  kind: 'send-invoice',
  payload: z.object({ invoiceId: z.string() }),
  maxAttempts: 5,
  retry: { baseMs: 100, maxMs: 60_000 }, // exponential, with full jitter
  timeoutMs: 30_000,
})

const tenantry = new Tenantry({ connectionString: process.env.DATABASE_URL, logger: console })
await tenantry.migrate() // any number of processes may do this at once
await tenantry.enqueueMany(
  ['1', '2', '3', '4'].map((invoiceId) => ({ definition: sendInvoice, payload: { invoiceId }, tenant: 'acme' })),
)

const worker = tenantry.worker({ concurrency: 10 })
worker.handle(sendInvoice, async (job, context) => {
  const { invoiceId } = job.payload
  if (invoiceId === '2') {
    console.log('cancelled invoice 2')
    return context.cancel('the invoice was withdrawn') // no longer wanted
  }
  if (invoiceId === '3') {
    console.log('discarded invoice 3')
    return context.discard('no such address') // can never succeed
  }
  if (invoiceId === '4' && job.errors.length === 0) throw new Error('mail server busy') // run again after a back-off
  await new Promise((resolve) => setTimeout(resolve, 10))
  context.signal.throwIfAborted() // the lease was lost, the time is up, or the worker is stopping
  console.log(`sent invoice ${invoiceId}`)
})
await worker.runUntilSignal()
await tenantry.close()
