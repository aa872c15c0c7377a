import { tokenDueMs, tokensIn } from './bucket.js'
import type { Allowance } from './settings.js'
import type { State } from './state.js'

/** When a token comes, a job is due or a parked lane is looked at again: whichever is first, after now. */
export function nextChangeMs(state: State, nowMs: number): number {
  const kinds = [...state.kinds.values()]
  const times = [
    state.parked.first?.parkedUntilMs,
    ...kinds.map(({ scheduled }) => scheduled.first?.runAtMs),
    ...[state.limits, ...kinds.map(({ limits }) => limits)].map((limits) => tokenMs(limits, nowMs)),
    ...state.awaitedKeys.values(),
  ]
  return times.reduce(
    (least: number, time) => (time !== undefined && time > nowMs ? Math.min(least, time) : least),
    Number.POSITIVE_INFINITY,
  )
}

function tokenMs(limits: Allowance, nowMs: number): number | undefined {
  const { rate } = limits
  return rate && tokensIn(limits, rate, nowMs) === 0 ? tokenDueMs(limits, rate) : undefined
}
