/**
 * The main module of a worker process. It does what any application's worker does, with a handler that takes as long
 * as the job says, and tells its parent when each handler started.
 */

import { delay, machineClockMs, systemClock } from '../clock.js'
import { jsonLogger } from '../logger.js'
import { Tenantry } from '../tenantry.js'
import type { Worker } from '../worker/worker.js'
import type { HandlerStart } from './comparison.js'
import type { FromWorker, ToWorker } from './protocol.js'
import { workloadJob } from './workload-job.js'

/** How often a process reports. The progress display needs no more; the figures carry times of their own. */
const REPORT_EVERY_MS = 100

const logger = jsonLogger((line) => process.stderr.write(line), systemClock.wallClock, 'warn')
let starts: HandlerStart[] = []
let claimsMs: number[] = []
let settled = 0
let settledMs = 0
let tenantry: Tenantry | undefined
let worker: Worker | undefined

process.on('message', (order: ToWorker) => {
  const followed = order.type === 'start' ? start(order) : stop()
  followed.catch((error: unknown) =>
    report({ type: 'failed', reason: error instanceof Error ? error.message : String(error) }),
  )
})
// The parent is gone, or wants us gone at once.
process.on('disconnect', () => process.exit(0))
// Ctrl-C reaches every process of the terminal's group; it is the parent who decides what follows.
process.on('SIGINT', () => {})

async function start(order: Extract<ToWorker, { type: 'start' }>): Promise<void> {
  const { connectionString, schema } = order
  tenantry = new Tenantry({ connectionString, schema, logger })
  worker = tenantry.worker({
    queue: order.queue,
    concurrency: order.concurrency,
    listen: order.listen ?? true,
    observe: {
      claim: ({ durationMs, claimed }) => {
        if (claimed > 0) claimsMs.push(durationMs)
      },
      settle: ({ accepted }) => {
        settled += accepted
        settledMs = machineClockMs()
      },
    },
  })
  worker.handle({ ...workloadJob, queue: order.queue }, async (job, context) => {
    // First of all: the order of these moments over all processes is what the comparison is about. A reading of the
    // machine's clock costs some 50 ns and no round trip; a sequence in the database would order the arrival of
    // statements, and slow every handler down by one.
    const startedMs = machineClockMs()
    if (job.payload.durationMs > 0) await delay(job.payload.durationMs, context.signal)
    starts.push({ index: job.payload.index, attempt: job.attempt, startedMs, endedMs: machineClockMs() })
  })
  await worker.start()
  setInterval(reportProgress, REPORT_EVERY_MS).unref()
  report({ type: 'ready' })
}

async function stop(): Promise<void> {
  await worker?.stop()
  await tenantry?.close()
  reportProgress()
  report({ type: 'stopped' })
}

function reportProgress(): void {
  if (starts.length === 0 && claimsMs.length === 0 && settled === 0) return
  report({ type: 'progress', starts, claimsMs, settled, settledMs })
  starts = []
  claimsMs = []
  settled = 0
}

function report(answer: FromWorker): void {
  if (process.connected) process.send?.(answer)
}
