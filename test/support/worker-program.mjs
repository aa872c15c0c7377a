// A worker as an application would write it. What a handler does is told by its payload, and it reports to its parent.
import { defineJob, jsonLogger, Tenantry } from '../../dist/index.js'

const { connectionString, schema, worker: options } = JSON.parse(process.argv[2])
const report = (...what) => process.connected && process.send(what)
const logger = jsonLogger(
  (line) => process.stderr.write(line),
  () => new Date(),
)
const tenantry = new Tenantry({ connectionString, schema, logger })
const worker = tenantry.worker({ ...options, observe: { leaseLost: ({ jobId }) => report('lost', jobId) } })

const message = new Promise((resolve) => process.once('message', resolve))

const behaviours = {
  'returns at once': () => {},
  'takes a moment': () => new Promise((resolve) => setTimeout(resolve, 30)),
  'waits for a message': () => message,
  'waits for its signal': (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
  'ignores everything': () => new Promise(() => setInterval(() => {}, 1_000)),
  exits: () => process.exit(1),
  aborts: () => process.abort(),
  blocks: () => {
    const endMs = performance.now() + 8_000
    while (performance.now() < endMs) Math.sqrt(endMs)
  },
}

worker.handle(defineJob({ kind: 'process' }), async (job, { signal }) => {
  report('started', job.payload, job.attempt)
  await behaviours[job.payload](signal)
  report('ended', job.payload, job.attempt)
  signal.throwIfAborted()
})

const ready = worker.runUntilSignal()
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => report('stopping'))
await Promise.race([ready, untilRunning()])
report('ready')
await ready
await tenantry.close()
report('stopped')
// The channel to the parent is ours and not the worker's. Nothing else may keep the process alive.
if (process.connected) process.disconnect()

async function untilRunning() {
  while (worker.status().state !== 'running') await new Promise((resolve) => setTimeout(resolve, 5))
}
