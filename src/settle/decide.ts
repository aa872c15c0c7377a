import { unreachable } from '../assert.js'
import { ERROR_TEXT_MAX } from '../limits.js'
import { describeValue } from '../options.js'
import type { Random } from '../random.js'
import { nextDelayMs, type RetryPolicy } from '../retry/policy.js'
import { describeFailure, plainText } from './failure.js'
import type { Failure, Outcome } from './outcome.js'
import { isPlannedExit, type PlannedExit } from './planned-exit.js'

/** How one attempt ended, as the worker saw it. */
export type AttemptResult =
  | { readonly type: 'returned'; readonly value: unknown }
  | { readonly type: 'threw'; readonly error: unknown }
  /** The stored payload is no longer what the definition's schema accepts; the handler was not called. */
  | { readonly type: 'payload-refused'; readonly issues: readonly string[] }

export interface AttemptCircumstances {
  /** The number of this attempt, 1 for the first. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly retry: RetryPolicy
  readonly random: Random
}

export interface Decision {
  readonly outcome: Outcome
  /** A mistake in the definition that did not change the outcome's kind; to be logged. */
  readonly warning?: string
}

/** What a finished attempt means for its job. Pure, and never throws: an attempt without an outcome runs for ever. */
export function decideOutcome(result: AttemptResult, circumstances: AttemptCircumstances): Decision {
  switch (result.type) {
    case 'returned':
      return decideReturned(result.value, circumstances)
    case 'threw':
      return decideFailed(result.error, describeFailure(result.error), circumstances)
    case 'payload-refused':
      return { outcome: { type: 'discard', failure: payloadFailure(result.issues) } }
    default:
      return unreachable(result)
  }
}

function decideReturned(value: unknown, circumstances: AttemptCircumstances): Decision {
  if (value === undefined) return { outcome: { type: 'complete' } }
  if (isPlannedExit(value)) return { outcome: plannedOutcome(value) }
  const message =
    `the handler returned ${describeValue(value)}; return nothing, ` +
    'context.snooze(ms), context.cancel(reason) or context.discard(reason)'
  return decideFailed(new TypeError(message), { name: 'UnexpectedReturn', message }, circumstances)
}

function plannedOutcome(exit: PlannedExit): Outcome {
  switch (exit.type) {
    case 'snooze':
      return { type: 'snooze', delayMs: exit.delayMs }
    case 'cancel':
      return { type: 'cancel', reason: exit.reason }
    case 'discard':
      return { type: 'discard', failure: { name: 'Discarded', message: exit.reason } }
    default:
      return unreachable(exit)
  }
}

function decideFailed(error: unknown, failure: Failure, circumstances: AttemptCircumstances): Decision {
  const { attempt, maxAttempts, retry, random } = circumstances
  if (attempt >= maxAttempts) return { outcome: { type: 'discard', failure } }
  const { delayMs, warning } = nextDelayMs(retry, { attempt, error, random })
  return { outcome: { type: 'retry', delayMs, failure }, ...(warning !== undefined && { warning }) }
}

/** Retrying cannot help: the payload stays as it is. An operator repairs the definition and enqueues it again. */
function payloadFailure(issues: readonly string[]): Failure {
  const message = `the stored payload does not pass the schema of its kind any more: ${issues.join('; ')}`
  return { name: 'PayloadRefused', message: plainText(message, ERROR_TEXT_MAX) }
}
