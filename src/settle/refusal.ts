/** Tries before a broken constraint is taken for the job's fault: a missing history partition breaks one too, for a moment. */
const CONSTRAINT_TRIES = 5

/**
 * Whether the database refuses something in the settlements themselves, so that sending the same again is in vain: a
 * value that it cannot store (SQLSTATE class 22, 54), or again and again a constraint (class 23).
 */
export function isRefusal(error: unknown, tries: number): boolean {
  const code = sqlState(error) ?? ''
  return /^(22|54)/.test(code) || (code.startsWith('23') && tries >= CONSTRAINT_TRIES)
}

/** The SQLSTATE of the error, or of the cause that it wraps. */
function sqlState(error: unknown): string | undefined {
  let cause = error
  for (let depth = 0; depth < 5 && cause instanceof Error; depth += 1) {
    if ('code' in cause && typeof cause.code === 'string' && /^[0-9A-Z]{5}$/.test(cause.code)) return cause.code
    cause = cause.cause
  }
  return undefined
}
