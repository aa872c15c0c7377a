import { ConfigurationError } from '../errors.js'
import { filterOption, type JobFilter } from '../job/filter.js'
import { checkKnownOptions, choiceOption, expected, integerOption, nameOption } from '../options.js'
import { reasonText } from '../settle/planned-exit.js'
import type { ProgressOptions } from './in-batches.js'

/** Why one job is cancelled. */
export interface CancelOptions {
  /** Kept with the job in the history, up to 4,096 characters of it. Default 'cancelled by the application'. */
  readonly reason?: string
}

export interface CancelAllOptions extends JobFilter, ProgressOptions {
  /** Kept with each job in the history, up to 4,096 characters of it. Default 'cancelled by the operator'. */
  readonly reason?: string
}

export interface MoveOptions extends JobFilter, ProgressOptions {}

export interface PurgeOptions extends JobFilter, ProgressOptions {
  /** Also deletes jobs that have ended, from the history. Default false. */
  readonly history?: boolean
}

export interface DrainOptions extends JobFilter {
  /**
   * 'idle', the default: pauses the queue, the tenant or the kind, and waits until nothing of it runs; it stays paused.
   * 'empty': pauses nothing and waits until nothing of it waits or runs; a quota of 0 keeps more from coming.
   */
  readonly until?: 'idle' | 'empty'
  /** 1 to 2,147,483,647 (24.8 days). Default: no limit. */
  readonly timeoutMs?: number
  /** Called after each look. */
  readonly onProgress?: (occupancy: Occupancy) => void
  /** Stops waiting: the promise rejects with its reason. */
  readonly signal?: AbortSignal
}

/** What there is of a queue or a part of it; counted up to 10,000 each. */
export interface Occupancy {
  readonly running: number
  /** Scheduled, blocked by their key, or available. */
  readonly waiting: number
}

const BATCH_OPTIONS = ['tenant', 'kind', 'onProgress', 'signal'] as const

/** The reason of the cancellation of one job. */
export function cancelReason(options: CancelOptions): string {
  checkKnownOptions('cancel', options, ['reason'])
  return reasonText('cancel', options.reason ?? 'cancelled by the application')
}

export function cancelAllOptions(options: CancelAllOptions) {
  checkKnownOptions('cancelAll', options, [...BATCH_OPTIONS, 'reason'])
  const { reason = 'cancelled by the operator' } = options
  return { ...batchOptions(options), reason: reasonText('cancelAll', reason) }
}

export function purgeOptions(options: PurgeOptions) {
  checkKnownOptions('purge', options, [...BATCH_OPTIONS, 'history'])
  const { history = false } = options
  if (typeof history !== 'boolean') throw expected('history', 'true or false', history)
  return { ...batchOptions(options), history }
}

export function moveOptions(options: MoveOptions) {
  checkKnownOptions('moveJobs', options, BATCH_OPTIONS)
  return batchOptions(options)
}

/** Another queue. */
export function targetOption(queue: string, target: unknown): string {
  const checked = nameOption('toQueue', target)
  if (checked === queue) throw expected('toQueue', 'another queue than that of the jobs', target)
  return checked
}

export function drainOptions(options: DrainOptions) {
  checkKnownOptions('drain', options, ['tenant', 'kind', 'until', 'timeoutMs', 'onProgress', 'signal'])
  const { until = 'idle', timeoutMs } = options
  const checked = {
    ...watchOptions(options),
    filter: filterOption(options),
    until: choiceOption('until', until, ['idle', 'empty']),
    ...(timeoutMs !== undefined && { timeoutMs: integerOption('timeoutMs', timeoutMs, { min: 1, max: 2 ** 31 - 1 }) }),
  }
  if (checked.until === 'idle' && checked.filter.tenant !== undefined && checked.filter.kind !== undefined) {
    throw new ConfigurationError(
      "drain until 'idle' takes a tenant or a kind, got both; there is no pause of both together",
    )
  }
  return checked
}

function batchOptions(options: JobFilter & ProgressOptions) {
  return { ...watchOptions<(jobs: number) => void>(options), filter: filterOption(options) }
}

function watchOptions<OnProgress>(options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal }) {
  const { onProgress, signal } = options
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw expected('onProgress', 'a function', onProgress)
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw expected('signal', 'an AbortSignal', signal)
  return { ...(onProgress !== undefined && { onProgress }), ...(signal !== undefined && { signal }) }
}
