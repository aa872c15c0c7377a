import { neverLessThanEmpty, takeTokens, tokenDueMs, tokensIn } from './bucket.js'
import type { Allowance, Defaults } from './settings.js'

/** Nobody's defaults: for the queue itself, and for kinds. */
export const NO_DEFAULTS: Defaults = { concurrency: undefined, rate: undefined }

/** How many more may start now; infinite without limits, 0 when paused. */
export function roomOf(limits: Allowance, defaults: Defaults, nowMs: number): number {
  if (limits.paused) return 0
  const concurrency = limits.concurrency ?? defaults.concurrency
  const rate = limits.rate ?? defaults.rate
  const slots = concurrency === undefined ? Number.POSITIVE_INFINITY : Math.max(0, concurrency - limits.running)
  if (rate === undefined) return slots
  neverLessThanEmpty(limits, rate, nowMs)
  return Math.min(slots, tokensIn(limits, rate, nowMs))
}

/** How often a claim looks again at what nothing has brought back. */
const LOOK_AGAIN_MS = 5_000

/** When to look again at a tenant without room: when its token is due, or, since whatever frees it says so, some time later. */
export function roomDueMs(limits: Allowance, defaults: Defaults, nowMs: number): number {
  const rate = limits.rate ?? defaults.rate
  const waitsForToken = !limits.paused && rate !== undefined && tokensIn(limits, rate, nowMs) === 0
  return waitsForToken ? Math.max(nowMs, tokenDueMs(limits, rate)) : nowMs + LOOK_AGAIN_MS
}

/** Records that so many start now. */
export function start(
  limits: Allowance,
  defaults: Defaults,
  started: { readonly jobs: number; readonly nowMs: number },
) {
  limits.running += started.jobs
  const rate = limits.rate ?? defaults.rate
  if (rate) takeTokens(limits, rate, { tokens: started.jobs, nowMs: started.nowMs })
}
