import { neverLessThanEmpty, tokenDueMs, tokensIn } from './bucket.js'
import { comesBefore, type Job } from './job.js'
import { start } from './room.js'
import type { Allowance } from './settings.js'
import { type Key, keyOf, type State, signal } from './state.js'

/** A due job with a key waits until a claim lets it through. */
export function awaitKey(state: State, job: Job): void {
  const key = keyOf(state, job.key as string)
  key.returning.delete(job)
  job.standing = 'blocked'
  key.blocked.push(job)
  state.noticedKeys.add(key)
}

/** Lets jobs through in their order, so that those that run or may run never exceed the limits of their key. */
export function admit(state: State, nowMs: number): void {
  for (const [key, dueMs] of state.awaitedKeys) {
    if (dueMs > nowMs) continue
    state.awaitedKeys.delete(key)
    state.noticedKeys.add(key)
  }
  for (const key of state.noticedKeys) {
    revoke(state, key, nowMs)
    for (let room = roomOfKey(state, key, nowMs); room > 0; room -= 1) {
      const job = key.blocked.first
      if (!job || mustWait(state, key, job)) break
      key.blocked.remove(job)
      job.standing = 'available'
      key.admitted.add(job)
      job.lane.backlog.push(job)
      signal(state, job.lane)
    }
    const rate = key.limits.rate ?? state.keyDefaults.rate
    if (rate && key.blocked.size > 0) {
      // One token more than the admitted jobs will use.
      const due = tokenDueMs(key.limits, rate) + (key.admitted.size * 1_000) / rate.perSecond
      if (due > nowMs) state.awaitedKeys.set(key, due)
    }
  }
  state.noticedKeys.clear()
}

/** How many more may be let through; negative when a limit was lowered. */
function roomOfKey(state: State, { limits, admitted }: Key, nowMs: number): number {
  const slots = Math.max(0, concurrencyOf(state, limits) - limits.running)
  const rate = limits.rate ?? state.keyDefaults.rate
  if (rate === undefined) return slots - admitted.size
  neverLessThanEmpty(limits, rate, nowMs)
  return Math.min(slots, tokensIn(limits, rate, nowMs)) - admitted.size
}

/** With a limit of one a job keeps its place while it waits for its retry. */
function mustWait(state: State, { limits, returning }: Key, job: Job): boolean {
  if (concurrencyOf(state, limits) !== 1) return false
  for (const each of returning) if (comesBefore(each, job)) return true
  return false
}

function concurrencyOf(state: State, limits: Allowance): number {
  return limits.concurrency ?? state.keyDefaults.concurrency ?? 1
}

/** Takes back what was let through and has not started, the last ones first, when a limit was lowered since. */
function revoke(state: State, key: Key, nowMs: number): void {
  let excess = -roomOfKey(state, key, nowMs)
  if (excess <= 0) return
  for (const job of [...key.admitted].sort((one, other) => (comesBefore(other, one) ? -1 : 1))) {
    if (excess <= 0) return
    key.admitted.delete(job)
    job.lane.backlog.remove(job)
    job.standing = 'blocked'
    key.blocked.push(job)
    excess -= 1
  }
}

/** An admitted job starts. */
export function startKeyed(state: State, job: Job, nowMs: number): void {
  const key = keyOf(state, job.key as string)
  key.admitted.delete(job)
  start(key.limits, state.keyDefaults, { jobs: 1, nowMs })
}
