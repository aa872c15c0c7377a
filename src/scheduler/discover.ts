import { learned } from './estimate.js'
import { admit, awaitKey } from './keys.js'
import type { Lane } from './lane.js'
import { enter, unpark } from './standing.js'
import { kindOf, ringOf, type State, signal } from './state.js'

/** Brings the ring up to date with what has happened since the last claim. */
export function discover(state: State, kinds: readonly string[], nowMs: number): void {
  promote(state, nowMs)
  if (state.measured.size > 0) learn(state)
  unparkDue(state, nowMs)
  if (state.noticedKeys.size > 0 || state.awaitedKeys.size > 0) admit(state, nowMs)
  const arrived: Lane[] = []
  for (const kind of kinds) {
    const { signalled } = kindOf(state, kind)
    if (signalled.length === 0) continue
    for (const lane of signalled) {
      lane.isSignalled = false
      if (lane.standing === 'idle') arrived.push(lane)
    }
    signalled.length = 0
  }
  if (arrived.length > 0) enter(state, arrived, kinds)
}

function promote(state: State, nowMs: number): void {
  for (;;) {
    const due = state.scheduled.first
    if (!due || due.runAtMs > nowMs) return
    state.scheduled.remove(due)
    if (due.key !== undefined) awaitKey(state, due)
    else {
      due.standing = 'available'
      due.lane.backlog.push(due)
      signal(state, due.lane)
    }
  }
}

function unparkDue(state: State, nowMs: number): void {
  for (const tenant of state.freed) {
    for (const lane of tenant.entries.values()) if (lane.standing === 'parked') unpark(state, lane)
  }
  state.freed.clear()
  for (;;) {
    const next = state.parked.first
    if (!next || next.parkedUntilMs > nowMs) return
    unpark(state, next)
  }
}

/** Corrects what was charged for jobs that have ended, and learns how long the next ones will take. */
function learn(state: State): void {
  const byKind = new Map<string, { jobs: number; seconds: number }>()
  for (const lane of state.measured) {
    const { measured } = lane
    lane.measured = undefined
    if (!measured) continue
    const { member } = lane
    const ring = ringOf(state, member)
    for (const each of member.entries.values()) ring.move(each, measured.surplus)
    for (const each of member.group?.entries.values() ?? []) state.ring.move(each, measured.surplus)
    lane.seconds = learned(lane.seconds, measured)
    const sum = byKind.get(lane.kind) ?? { jobs: 0, seconds: 0 }
    byKind.set(lane.kind, { jobs: sum.jobs + measured.jobs, seconds: sum.seconds + measured.seconds })
  }
  state.measured.clear()
  for (const [name, measured] of byKind) {
    const kind = kindOf(state, name)
    kind.seconds = learned(kind.seconds, measured)
  }
}
