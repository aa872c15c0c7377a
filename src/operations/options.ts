import { ConfigurationError } from '../errors.js'
import { checkKnownOptions, choiceOption, expected, integerOption, nameOption } from '../options.js'
import { filterOption } from '../settings/scope.js'
import type { Scope } from '../settings/settings.js'
import { reasonText } from '../settle/planned-exit.js'
import type { BatchOptions } from './in-batches.js'

/** Which jobs of a queue: those of one tenant, of one kind, of both, or all. */
export interface JobFilter extends Scope, BatchOptions {}

export interface CancelOptions extends JobFilter {
  /** Kept with the jobs in the history. */
  readonly reason?: string
}

export interface PurgeOptions extends JobFilter {
  /** Also deletes jobs that have ended, from the history. Default false. */
  readonly history?: boolean
}

export interface DrainOptions extends Scope {
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

export function cancelOptions(options: CancelOptions) {
  checkKnownOptions('cancelAll', options, [...BATCH_OPTIONS, 'reason'])
  const { reason = 'cancelled by the operator' } = options
  return { ...batchOptions('cancelAll', options), reason: reasonText('cancelAll', reason) }
}

export function purgeOptions(options: PurgeOptions) {
  checkKnownOptions('purge', options, [...BATCH_OPTIONS, 'history'])
  const { history = false } = options
  if (typeof history !== 'boolean') throw expected('history', 'true or false', history)
  return { ...batchOptions('purge', options), history }
}

export function moveOptions(options: JobFilter) {
  checkKnownOptions('moveJobs', options, BATCH_OPTIONS)
  return batchOptions('moveJobs', options)
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
    scope: scopeOf('drain', options),
    until: choiceOption('until', until, ['idle', 'empty']),
    ...(timeoutMs !== undefined && { timeoutMs: integerOption('timeoutMs', timeoutMs, { min: 1, max: 2 ** 31 - 1 }) }),
  }
  if (checked.until === 'idle' && checked.scope.tenant !== undefined && checked.scope.kind !== undefined) {
    throw new ConfigurationError(
      "drain until 'idle' takes a tenant or a kind, got both; there is no pause of both together",
    )
  }
  return checked
}

function batchOptions(what: string, options: JobFilter) {
  return { ...watchOptions<(jobs: number) => void>(options), filter: scopeOf(what, options) }
}

function watchOptions<OnProgress>(options: { readonly onProgress?: OnProgress; readonly signal?: AbortSignal }) {
  const { onProgress, signal } = options
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw expected('onProgress', 'a function', onProgress)
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw expected('signal', 'an AbortSignal', signal)
  return { ...(onProgress !== undefined && { onProgress }), ...(signal !== undefined && { signal }) }
}

function scopeOf(what: string, { tenant, kind }: Scope): Scope {
  return filterOption(what, { tenant, kind })
}
