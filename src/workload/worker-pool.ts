import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { delay } from '../clock.js'
import type { FromWorker, ToWorker, WorkerProgress } from './protocol.js'
import { WorkloadError } from './workload.js'

export interface WorkerPoolOptions {
  readonly processes: number
  readonly start: Extract<ToWorker, { type: 'start' }>
  readonly onProgress: (progress: WorkerProgress) => void
}

/** How long a worker process may take to settle and leave before it is killed. */
const STOP_DEADLINE_MS = 10_000

/** The worker processes of one run. They are real processes because that is what a queue has to cope with. */
export class WorkerPool {
  readonly #children: readonly ChildProcess[]
  readonly #options: WorkerPoolOptions
  /** Rejects when a worker process reports a failure or ends by itself. Never resolves. */
  readonly failure: Promise<never>
  #fail: (error: WorkloadError) => void = () => {}
  #stopping = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.failure = new Promise((_, reject) => {
      this.#fail = reject
    })
    // Whoever waits for it hears of a failure; when nobody does, it must not end this process.
    this.failure.catch(() => {})
    this.#children = Array.from({ length: options.processes }, () => this.#fork())
  }

  /** Resolves once every process claims. */
  async start(): Promise<void> {
    const ready = this.#answersOf('ready')
    for (const child of this.#children) send(child, this.#options.start)
    await Promise.race([ready, this.failure])
  }

  /** Resolves once every process has settled and reported all it did, and is gone. */
  async stop(): Promise<void> {
    this.#stopping = true
    const stopped = this.#answersOf('stopped')
    for (const child of this.#children) send(child, { type: 'stop' })
    const inTime = new AbortController()
    const overdue = delay(STOP_DEADLINE_MS, inTime.signal).then(() => {
      if (!inTime.signal.aborted) throw new WorkloadError(`a worker process did not stop within ${STOP_DEADLINE_MS} ms`)
    })
    try {
      await Promise.race([stopped, this.failure, overdue])
    } finally {
      inTime.abort()
      await this.kill()
    }
  }

  /** Ends every process, whatever it is doing. Safe to call at any time and more than once. */
  async kill(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#children.map(endOf))
  }

  #fork(): ChildProcess {
    const child = fork(fileURLToPath(new URL('./worker-process.js', import.meta.url)), [], {
      // Nothing of a debugger or a loader of ours, and no word on stdout, which may belong to a JSON document.
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('message', (report: FromWorker) => {
      if (report.type === 'progress') this.#options.onProgress(report)
      if (report.type === 'failed') this.#fail(new WorkloadError(`a worker process failed: ${report.reason}`))
    })
    child.on('error', (error) => {
      this.#fail(new WorkloadError(`cannot run a worker process: ${error.message}`, { cause: error }))
    })
    child.on('exit', (code, signal) => {
      if (this.#stopping) return
      this.#fail(new WorkloadError(`a worker process ended by itself (${signal ?? `exit code ${code}`})`))
    })
    return child
  }

  async #answersOf(type: FromWorker['type']): Promise<void> {
    await Promise.all(
      this.#children.map(
        (child) =>
          new Promise<void>((resolve) => {
            child.on('message', (report: FromWorker) => {
              if (report.type === type) resolve()
            })
          }),
      ),
    )
  }
}

function send(child: ChildProcess, order: ToWorker): void {
  // An error here means that the process is gone, which its exit event reports.
  child.send(order, () => {})
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  // Without its channel a worker process leaves by itself.
  if (child.connected) child.disconnect()
  const inTime = new AbortController()
  const overdue = delay(STOP_DEADLINE_MS, inTime.signal).then(() => inTime.signal.aborted || child.kill('SIGKILL'))
  await ended
  inTime.abort()
  await overdue
}
