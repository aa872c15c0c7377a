import { DELAY_MS_MAX } from '../limits.js'
import { checkKnownOptions, choiceOption, describeValue, expected, integerOption, numberOption } from '../options.js'
import type { Random } from '../random.js'

/** Exponential back-off: before attempt n + 1 a job waits up to `baseMs * factor ** (n - 1)`, and never over `maxMs`. */
export interface BackoffOptions {
  /** The longest wait after the first failure. */
  readonly baseMs?: number
  /** By how much the wait grows with each failure. */
  readonly factor?: number
  /** The longest wait after any failure. */
  readonly maxMs?: number
  /** 'full': a random wait between 0 and the computed one. 'none': exactly the computed one. */
  readonly jitter?: 'full' | 'none'
}

/** Milliseconds until the next attempt, from the number of the failed attempt (1 for the first) and what was thrown. */
export type RetryFunction = (attempt: number, error: unknown) => number

export type RetryOptions = BackoffOptions | RetryFunction

export interface RetryPolicy {
  readonly backoff: Readonly<Required<BackoffOptions>>
  /** Asked first; the back-off is what remains when its answer cannot be used. */
  readonly custom?: RetryFunction
}

/**
 * One second lets a dropped connection come back. Doubling reaches the cap of an hour after 13 failures: long enough to
 * outlast an outage, short enough that a repaired dependency is noticed the same day. Jitter is full because jobs that
 * failed together would otherwise come back together and bring the dependency down again; of the variants compared in
 * "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015) it needs the fewest calls to get all work through.
 */
export const BACKOFF_DEFAULTS = Object.freeze({
  baseMs: 1_000,
  factor: 2,
  maxMs: 3_600_000,
  jitter: 'full',
} as const satisfies Required<BackoffOptions>)

/** What a definition without `retry` gets. */
export const DEFAULT_RETRY: RetryPolicy = Object.freeze({ backoff: BACKOFF_DEFAULTS })

const BACKOFF_OPTIONS = ['baseMs', 'factor', 'maxMs', 'jitter'] as const satisfies (keyof BackoffOptions)[]

/** Checks the options and completes them with the defaults. */
export function resolveRetry(options: RetryOptions | undefined): RetryPolicy {
  if (options === undefined) return DEFAULT_RETRY
  if (typeof options === 'function') return Object.freeze({ backoff: BACKOFF_DEFAULTS, custom: options })
  checkKnownOptions('retry', options, BACKOFF_OPTIONS)
  const {
    baseMs = BACKOFF_DEFAULTS.baseMs,
    factor = BACKOFF_DEFAULTS.factor,
    maxMs = BACKOFF_DEFAULTS.maxMs,
    jitter = BACKOFF_DEFAULTS.jitter,
  } = options
  const backoff = {
    baseMs: integerOption('retry.baseMs', baseMs, { min: 0, max: DELAY_MS_MAX }),
    factor: numberOption('retry.factor', factor, { min: 1, max: 1_000 }),
    maxMs: integerOption('retry.maxMs', maxMs, { min: 0, max: DELAY_MS_MAX }),
    jitter: choiceOption('retry.jitter', jitter, ['full', 'none']),
  }
  if (backoff.baseMs > backoff.maxMs) {
    throw expected('retry.baseMs', `at most retry.maxMs (${backoff.maxMs})`, backoff.baseMs, 'raise maxMs as well')
  }
  return Object.freeze({ backoff: Object.freeze(backoff) })
}

export interface FailedAttempt {
  /** 1 for the first. */
  readonly attempt: number
  readonly error: unknown
  readonly random: Random
}

export interface RetryDelay {
  /** An integer from 0 to `DELAY_MS_MAX`, and to `maxMs` when it comes from the back-off. */
  readonly delayMs: number
  /** Why the definition's own function was not followed. */
  readonly warning?: string
}

/** How long to wait before the next attempt. Never throws: a failure must be recorded even if its policy is broken. */
export function nextDelayMs(policy: RetryPolicy, failed: FailedAttempt): RetryDelay {
  if (policy.custom === undefined) return { delayMs: backoffMs(policy, failed) }
  const asked = askCustom(policy.custom, failed)
  if ('delayMs' in asked) return asked
  return { delayMs: backoffMs(policy, failed), warning: `${asked.problem}; the default back-off is used instead` }
}

function backoffMs({ backoff }: RetryPolicy, { attempt, random }: FailedAttempt): number {
  const { baseMs, factor, maxMs, jitter } = backoff
  // At high attempts the power is Infinity, which the minimum takes; but 0 * Infinity would be NaN.
  const ceilingMs = baseMs === 0 ? 0 : Math.floor(Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1)))
  if (jitter === 'none') return ceilingMs
  return Math.min(ceilingMs, Math.floor(random.next() * (ceilingMs + 1)))
}

function askCustom(custom: RetryFunction, failed: FailedAttempt): { delayMs: number } | { problem: string } {
  let answer: unknown
  try {
    answer = custom(failed.attempt, failed.error)
  } catch (error) {
    return { problem: `the retry function threw ${describeThrown(error)}` }
  }
  if (typeof answer === 'number' && answer >= 0 && answer <= DELAY_MS_MAX) return { delayMs: Math.round(answer) + 0 }
  ignoreRejection(answer)
  const wanted = `a number of milliseconds from 0 to ${DELAY_MS_MAX}`
  return { problem: `expected the retry function to return ${wanted}, got ${describeValue(answer)}` }
}

function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? describeValue(error.message) : describeValue(error)
  } catch {
    return 'a value that cannot be read'
  }
}

/** An async retry function is a mistake that gets a warning; its rejection must not end the process on top of that. */
function ignoreRejection(answer: unknown): void {
  if (typeof answer === 'object' && answer !== null) Promise.resolve(answer).catch(() => {})
}
