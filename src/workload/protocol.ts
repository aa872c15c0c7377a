import type { HandlerStart } from './comparison.js'

/** What a worker process is told over its IPC channel: the connection string must not be seen in a list of processes. */
export type ToWorker =
  | {
      readonly type: 'start'
      readonly connectionString: string
      readonly schema: string
      readonly queue: string
      readonly concurrency: number
      /** False: it finds its jobs by polling alone. Default true. */
      readonly listen?: boolean
    }
  | { readonly type: 'stop' }

/** What it answers. */
export type FromWorker =
  /** It claims from now on. */
  | { readonly type: 'ready' }
  | WorkerProgress
  /** Everything is settled and reported. */
  | { readonly type: 'stopped' }
  | { readonly type: 'failed'; readonly reason: string }

/** What happened since the last such report. */
export interface WorkerProgress {
  readonly type: 'progress'
  /** Handlers that have ended. */
  readonly starts: readonly HandlerStart[]
  /** Claims that brought jobs. */
  readonly claimsMs: readonly number[]
  /** Jobs whose end is recorded in the database, and when the last of them was. */
  readonly settled: number
  readonly settledMs: number
}
