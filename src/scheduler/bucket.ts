/** Starts in the long run, and how many may start at once after a rest. */
export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

/**
 * A token bucket as one number (the generic cell rate algorithm): when it is full again. Nothing fills it and nothing
 * ticks, and a change of rate or burst acts at once. In any window of T seconds at most burst + rate × T may start.
 */
export interface Bucket {
  fullAtMs: number
}

/** A token that falls due now must count although its time was rounded: less than a millionth of one is missing then. */
const ROUNDING = 1e-6

/** Whole tokens, 0 to the burst. */
export function tokensIn(bucket: Bucket, rate: Rate, nowMs: number): number {
  const missing = (Math.max(0, bucket.fullAtMs - nowMs) * rate.perSecond) / 1_000
  return Math.max(0, Math.floor(rate.burst - missing + ROUNDING))
}

export function takeTokens(
  bucket: Bucket,
  rate: Rate,
  taken: { readonly tokens: number; readonly nowMs: number },
): void {
  bucket.fullAtMs = Math.max(bucket.fullAtMs, taken.nowMs) + (taken.tokens * 1_000) / rate.perSecond
}

/**
 * A bucket is never emptier than empty: after its rate was raised or its burst lowered, what was taken before would be filled
 * up at the new rate for as long as at the old one.
 */
export function neverLessThanEmpty(bucket: Bucket, rate: Rate, nowMs: number): void {
  bucket.fullAtMs = Math.min(bucket.fullAtMs, nowMs + (rate.burst * 1_000) / rate.perSecond)
}

/** When there is at least one token. */
export function tokenDueMs(bucket: Bucket, rate: Rate): number {
  return bucket.fullAtMs - ((rate.burst - 1) * 1_000) / rate.perSecond
}
