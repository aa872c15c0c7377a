import type { Entry, Group, Lane, Tenant } from './lane.js'
import type { Ring } from './ring.js'
import { roomDueMs } from './room.js'
import { isUnlimited } from './settings.js'
import { groupEntryOf, kindOf, ringOf, type State } from './state.js'

/**
 * Makes lanes ready that have had an arrival. No credit for idling: a lane begins at the largest pass of its tenant's
 * lanes of these kinds, or where those that wait do. All who enter together find the same floor.
 */
export function enter(state: State, lanes: readonly Lane[], kinds: readonly string[]): void {
  const floors = new Floors(state, kinds)
  for (const lane of lanes) floors.note(ringOf(state, lane.member), lane.kind)
  for (const lane of lanes) {
    const ring = ringOf(state, lane.member)
    ring.enter(lane, Math.max(floors.of(ring, lane.kind), largestPass(lane, kinds)))
  }
  refreshGroups(state, groupsOf(lanes), kinds)
}

/** Brings back what was parked, whatever its kind, to be looked at again. No credit for having waited either. */
export function unpark(state: State, lanes: readonly Lane[], kinds: readonly string[]): void {
  const floors = new Floors(state, kinds)
  for (const lane of lanes) floors.note(ringOf(state, lane.member), lane.kind)
  for (const lane of lanes) {
    const ring = ringOf(state, lane.member)
    state.parked.remove(lane)
    ring.enter(lane, floors.of(ring, lane.kind))
  }
  refreshGroups(state, groupsOf(lanes), kinds)
}

/** The lane has nothing more to give now. */
export function rest(state: State, lane: Lane): void {
  ringOf(state, lane.member).rest(lane)
  if (lane.member.group) refreshEntry(state, lane.member.group, lane.kind)
}

/** All ready lanes of a tenant without room leave the order: from now on they cost a claim nothing. */
export function park(state: State, tenant: Tenant, nowMs: number): void {
  const untilMs = roomDueMs(tenant.limits, state.tenantDefaults, nowMs)
  for (const lane of tenant.entries.values()) {
    if (lane.standing !== 'ready') continue
    parkLane(state, lane, untilMs)
    if (tenant.group) refreshEntry(state, tenant.group, lane.kind)
  }
}

export function parkLane(state: State, lane: Lane, untilMs: number): void {
  ringOf(state, lane.member).park(lane)
  lane.parkedUntilMs = untilMs
  state.parked.push(lane)
}

/** A pass counts in one ring only: a tenant that changes its group begins in the new one where those that wait do. */
export function regroup(state: State, tenant: Tenant, kinds: readonly string[]): void {
  const { group: before, nextGroup: group } = tenant
  if (before === group) return
  const floors = new Floors(state, kinds)
  const ring = group?.ring ?? state.ring
  const lanes = [...tenant.entries.values()]
  for (const lane of lanes) floors.note(ring, lane.kind)
  for (const lane of lanes) {
    if (lane.standing === 'parked') state.parked.remove(lane)
    ringOf(state, tenant).leave(lane)
  }
  tenant.group = group
  for (const lane of lanes) {
    const isUnserved = lane.standing === 'idle' && lane.pass === 0
    ring.restore(lane, lane.standing === 'idle' ? 'idle' : 'ready', isUnserved ? 0 : floors.of(ring, lane.kind))
  }
  refreshGroups(state, new Set([before, group].filter((each) => each !== undefined)), kinds)
}

/** A group stands at the top, kind by kind, exactly while one of its tenants waits. */
function refreshGroups(state: State, groups: ReadonlySet<Group>, kinds: readonly string[]): void {
  for (const group of groups) {
    for (const kind of state.kinds.keys()) {
      const isReady = group.ring.hasReady(kind)
      const entry = isReady ? groupEntryOf(state, group, kind) : group.entries.get(kind)
      if (!entry || isReady === (entry.standing === 'ready')) continue
      if (isReady)
        state.ring.enter(entry, Math.max(floorOf(state, state.ring, { kind, kinds }), largestPass(entry, kinds)))
      else state.ring.rest(entry)
    }
  }
}

function refreshEntry(state: State, group: Group, kind: string): void {
  const entry = group.entries.get(kind)
  if (entry?.standing === 'ready' && !group.ring.hasReady(kind)) state.ring.rest(entry)
}

function groupsOf(lanes: readonly Lane[]): Set<Group> {
  return new Set(lanes.flatMap(({ member }) => (member.group ? [member.group] : [])))
}

/** Service of the kinds of a claim counts together. */
function largestPass({ member }: Entry, kinds: readonly string[]): number {
  let largest = 0
  for (const kind of kinds) largest = Math.max(largest, member.entries.get(kind)?.pass ?? 0)
  return largest
}

/**
 * Whose passes tell where those of a kind begin: those of kinds without limits, and of the kind itself. While a kind is
 * paused or at its limit its passes stand still, and whoever began at one of them would be served alone for long.
 */
function floorOf(
  state: State,
  ring: Ring,
  { kind, kinds }: { readonly kind: string; readonly kinds: readonly string[] },
): number {
  return ring.floor(
    kinds.length === 1 && kinds[0] === kind
      ? kinds
      : kinds.filter((each) => each === kind || isUnlimited(kindOf(state, each).limits)),
    kinds,
  )
}

/** Floors as they were before anybody entered. */
class Floors {
  readonly #state: State
  readonly #kinds: readonly string[]
  readonly #known = new Map<Ring, Map<string, number>>()

  constructor(state: State, kinds: readonly string[]) {
    this.#state = state
    this.#kinds = kinds
  }

  note(ring: Ring, kind: string): void {
    const known = this.#known.get(ring) ?? new Map<string, number>()
    this.#known.set(ring, known)
    if (!known.has(kind)) known.set(kind, floorOf(this.#state, ring, { kind, kinds: this.#kinds }))
  }

  of(ring: Ring, kind: string): number {
    return this.#known.get(ring)?.get(kind) ?? 0
  }
}
