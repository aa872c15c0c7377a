import { DELAY_MS_MAX, ERROR_TEXT_MAX } from '../limits.js'
import { expected, integerOption } from '../options.js'
import { plainText } from './failure.js'

/** Marks values made here. No payload and no result of other code can carry it by accident. */
const brand: unique symbol = Symbol('tenantry planned exit')

/** What a handler returns when the attempt ends neither in success nor in failure. Made by the context's methods. */
export type PlannedExit =
  | { readonly [brand]: true; readonly type: 'snooze'; readonly delayMs: number }
  | { readonly [brand]: true; readonly type: 'cancel'; readonly reason: string }
  | { readonly [brand]: true; readonly type: 'discard'; readonly reason: string }

/** Run the job again after `ms`, without counting this attempt as a failure. */
export function snooze(ms: number): PlannedExit {
  const delayMs = integerOption('the delay of snooze', ms, { min: 0, max: DELAY_MS_MAX })
  return Object.freeze({ [brand]: true as const, type: 'snooze', delayMs })
}

/** The job is no longer wanted. */
export function cancel(reason: string): PlannedExit {
  return Object.freeze({ [brand]: true as const, type: 'cancel', reason: reasonText('cancel', reason) })
}

/** The job can never succeed: no further attempts. */
export function discard(reason: string): PlannedExit {
  return Object.freeze({ [brand]: true as const, type: 'discard', reason: reasonText('discard', reason) })
}

/** Whether a handler's result was made here. Never throws, whatever the handler returned. */
export function isPlannedExit(value: unknown): value is PlannedExit {
  if (typeof value !== 'object' || value === null) return false
  try {
    return Object.hasOwn(value, brand)
  } catch {
    return false // a Proxy whose traps throw
  }
}

/** Bounded, and nothing in it that PostgreSQL's text cannot carry. */
export function reasonText(exit: string, reason: unknown): string {
  if (typeof reason !== 'string' || reason === '') throw expected(`the reason of ${exit}`, 'a text for people', reason)
  return plainText(reason, ERROR_TEXT_MAX)
}
