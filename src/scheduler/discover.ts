import { learned } from './estimate.js'
import { admit, awaitKey } from './keys.js'
import type { Lane } from './lane.js'
import { enter, regroup, unpark } from './standing.js'
import { kindOf, ringOf, type State, signal } from './state.js'

/** Brings the ring up to date with what has happened since the last claim. */
export function discover(state: State, kinds: readonly string[], nowMs: number): void {
  unparkDue(state, kinds, nowMs)
  for (const kind of kinds) promote(state, kind, nowMs)
  if (state.measured.size > 0) correct(state, kinds)
  if (state.noticed.size > 0) lookAgain(state, kinds)
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

function promote(state: State, kind: string, nowMs: number): void {
  const { scheduled } = kindOf(state, kind)
  for (;;) {
    const due = scheduled.first
    if (!due || due.runAtMs > nowMs) return
    scheduled.remove(due)
    if (due.key !== undefined) awaitKey(state, due)
    else {
      due.standing = 'available'
      due.lane.backlog.push(due)
      signal(state, due.lane)
    }
  }
}

/** Tenants of which a slot is free or a setting has changed. */
function lookAgain(state: State, kinds: readonly string[]): void {
  const lanes: Lane[] = []
  for (const tenant of state.noticed) {
    if (tenant.group !== tenant.nextGroup) regroup(state, tenant, kinds)
    else for (const lane of tenant.entries.values()) if (lane.standing === 'parked') lanes.push(lane)
  }
  state.noticed.clear()
  if (lanes.length > 0) unpark(state, lanes, kinds)
}

function unparkDue(state: State, kinds: readonly string[], nowMs: number): void {
  const lanes: Lane[] = []
  for (;;) {
    const next = state.parked.first
    if (!next || next.parkedUntilMs > nowMs) break
    state.parked.remove(next)
    lanes.push(next)
  }
  if (lanes.length === 0) return
  for (const lane of lanes) state.parked.push(lane)
  unpark(state, lanes, kinds)
}

/** Corrects what was charged for jobs of the kinds that have ended, and learns how long the next ones will take. */
function correct(state: State, kinds: readonly string[]): void {
  const byKind = new Map<string, { jobs: number; seconds: number }>()
  for (const lane of state.measured) {
    const { measured, member } = lane
    if (!measured || !kinds.includes(lane.kind)) continue
    state.measured.delete(lane)
    lane.measured = undefined
    const ring = ringOf(state, member)
    for (const kind of kinds) {
      const own = member.entries.get(kind)
      if (own) ring.move(own, measured.surplus)
      const entry = member.group?.entries.get(kind)
      if (entry) state.ring.move(entry, measured.surplus)
    }
    lane.seconds = learned(lane.seconds, measured)
    const sum = byKind.get(lane.kind) ?? { jobs: 0, seconds: 0 }
    byKind.set(lane.kind, { jobs: sum.jobs + measured.jobs, seconds: sum.seconds + measured.seconds })
  }
  for (const [name, measured] of byKind) {
    const kind = kindOf(state, name)
    kind.seconds = learned(kind.seconds, measured)
  }
}
