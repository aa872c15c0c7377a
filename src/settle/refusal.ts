import { isBrokenConstraint, isRefusedValue } from '../driver/pg-errors.js'

/** Tries before a broken constraint is taken for the job's fault: a missing history partition breaks one too, for a moment. */
const CONSTRAINT_TRIES = 5

/**
 * Whether the database refuses something in the settlements themselves, so that sending the same again is in vain: a
 * value that it cannot store, or again and again a constraint.
 */
export function isRefusal(error: unknown, tries: number): boolean {
  return isRefusedValue(error) || (isBrokenConstraint(error) && tries >= CONSTRAINT_TRIES)
}
