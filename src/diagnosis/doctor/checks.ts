import type { Check } from './check.js'
import { keys, leases, limits, objectives, reclaim, workers } from './jobs.js'
import { parked, signals, starvation } from './ring.js'
import { history, horizon, locks, vacuum } from './server.js'

/** Every check, in the order in which they are told: what stops work first, then what bends fairness, then what slows down. */
export const CHECKS: readonly Check[] = [
  locks,
  workers,
  reclaim,
  leases,
  limits,
  keys,
  starvation,
  parked,
  signals,
  objectives,
  horizon,
  vacuum,
  history,
]
