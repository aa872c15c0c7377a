import { learned } from './estimate.js'
import { admit, awaitKey } from './keys.js'
import type { Lane, Tenant } from './lane.js'
import { enter, lookAgain } from './standing.js'
import { kindOf, ringOf, type State, signal } from './state.js'

/** Brings the ring up to date with what has happened since the last claim. */
export function discover(state: State, kinds: readonly string[], nowMs: number): void {
  unparkDue(state, kinds, nowMs)
  for (const kind of kinds) promote(state, kind, nowMs)
  if (state.measured.size > 0) correct(state, kinds)
  if (state.noticed.size > 0) {
    lookAgain(state, state.noticed, kinds)
    state.noticed.clear()
  }
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

function unparkDue(state: State, kinds: readonly string[], nowMs: number): void {
  const due = state.parked.first
  if (!due || due.parkedUntilMs > nowMs) return
  const tenants = new Set<Tenant>()
  for (const lane of state.parked) if (lane.parkedUntilMs <= nowMs) tenants.add(lane.member)
  lookAgain(state, tenants, kinds)
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
