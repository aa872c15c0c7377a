import type { HandlerStart } from './comparison.js'

/** What a worker process is told over its IPC channel: the connection string must not be seen in a list of processes. */
export type ToWorker =
  | {
      readonly type: 'start'
      readonly connectionString: string
      readonly schema: string
      readonly queue: string
      readonly concurrency: number
    }
  | { readonly type: 'stop' }

/** What it answers. */
export type FromWorker =
  /** It claims from now on. */
  | { readonly type: 'ready' }
  /** Handlers that have ended and claims that brought jobs, since the last such report. */
  | { readonly type: 'progress'; readonly starts: readonly HandlerStart[]; readonly claimsMs: readonly number[] }
  /** Everything is settled and reported. */
  | { readonly type: 'stopped' }
  | { readonly type: 'failed'; readonly reason: string }
