import type { Lane, Tenant } from './lane.js'
import type { Ring } from './ring.js'
import { roomDueMs } from './room.js'
import { groupEntryOf, ringOf, type State, signal } from './state.js'

/** Makes lanes ready, and their groups. All who enter together begin at the same floor. */
export function enter(state: State, lanes: readonly Lane[], kinds: readonly string[]): void {
  const floors = new Map<Ring, number>()
  const floorOf = (ring: Ring) => {
    const known = floors.get(ring)
    if (known !== undefined) return known
    const floor = ring.floor(kinds)
    floors.set(ring, floor)
    return floor
  }
  for (const lane of lanes) {
    const { group } = lane.member
    const ring = ringOf(state, lane.member)
    ring.enter(lane, floorOf(ring), kinds)
    if (group) state.ring.enter(groupEntryOf(state, group, lane.kind), floorOf(state.ring), kinds)
  }
}

/** The lane has nothing more to give now. */
export function rest(state: State, lane: Lane): void {
  ringOf(state, lane.member).rest(lane)
  restGroup(state, lane)
}

/** All ready lanes of the kinds of a tenant without room: from now on they cost a claim nothing. */
export function park(
  state: State,
  tenant: Tenant,
  { kinds, nowMs }: { readonly kinds: readonly string[]; readonly nowMs: number },
) {
  const untilMs = roomDueMs(tenant.limits, state.tenantDefaults, nowMs)
  for (const kind of kinds) {
    const lane = tenant.entries.get(kind)
    if (lane?.standing !== 'ready') continue
    parkLane(state, lane, untilMs)
    restGroup(state, lane)
  }
}

export function parkLane(state: State, lane: Lane, untilMs: number): void {
  ringOf(state, lane.member).park(lane)
  lane.parkedUntilMs = untilMs
  state.parked.push(lane)
}

/** Brings a parked lane back: the next claim of its kind makes it ready, and parks it again if there is still no room. */
export function unpark(state: State, lane: Lane): void {
  state.parked.remove(lane)
  ringOf(state, lane.member).rest(lane)
  signal(state, lane)
}

function restGroup(state: State, lane: Lane): void {
  const { group } = lane.member
  if (!group || group.ring.hasReady(lane.kind)) return
  const entry = groupEntryOf(state, group, lane.kind)
  if (entry.standing === 'ready') state.ring.rest(entry)
}
