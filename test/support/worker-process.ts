import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { WorkerOptions } from '../../src/index.js'
import { until } from './until.js'

const PROGRAM = fileURLToPath(new URL('./worker-program.mjs', import.meta.url))

export interface WorkerProcessOptions {
  readonly connectionString: string
  readonly schema: string
  /** Given to `tenantry.worker`. */
  readonly worker?: WorkerOptions
}

/** What the program reports: `[what]` or `[what, job's payload, attempt]`. */
export type Report = readonly [string, unknown?, number?]

export interface WorkerProcess {
  readonly process: ChildProcess
  readonly pid: number
  readonly reports: readonly Report[]
  /** Lines of its log. */
  readonly log: readonly string[]
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>
  /** Waits until it has reported so. */
  reported(...report: Report): Promise<void>
}

/**
 * A real worker process, as an application's would be: `worker-program.mjs` on the built package. What its handlers do
 * is told by the payload. Killed at the end of the test if it still runs then.
 */
export function startWorkerProcess(options: WorkerProcessOptions): WorkerProcess {
  const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const reports: Report[] = []
  const log: string[] = []
  child.on('message', (report) => reports.push(report as Report))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => log.push(...text.split('\n')))
  const ended = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  )
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    process: child,
    pid: child.pid ?? -1,
    reports,
    log,
    ended,
    reported: async (...report) => {
      const expected = JSON.stringify(report)
      const found = () => reports.some((each) => JSON.stringify(each.slice(0, report.length)) === expected)
      await until(found, { until: `the worker process has reported ${expected}; its log: ${log.join('\n')}` })
    },
  }
}
