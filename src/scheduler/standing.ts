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
    lane.hasEntered = true
    ring.enter(lane, Math.max(floors.of(ring, lane.kind), largestPass(lane, kinds)))
  }
  refreshGroups(state, groupsOf(lanes), kinds)
}

/**
 * Looks again at tenants of which a slot is free or a setting has changed: what was parked comes back, whatever its kind, and
 * whoever has changed the group goes there. No credit for having waited; and as a pass counts in one ring only, whoever comes
 * into another one begins where those that wait there do.
 */
export function lookAgain(state: State, tenants: Iterable<Tenant>, kinds: readonly string[]): void {
  const floors = new Floors(state, kinds)
  const groups = new Set<Group>()
  const concerned = [...tenants].flatMap((tenant) => {
    const lanes = [...tenant.entries.values()]
    return tenant.group === tenant.nextGroup ? lanes.filter(({ standing }) => standing === 'parked') : lanes
  })
  for (const { member, kind } of concerned) {
    floors.note(member.nextGroup?.ring ?? state.ring, kind)
    for (const group of [member.group, member.nextGroup]) if (group) groups.add(group)
  }
  for (const lane of concerned) comeBack(state, lane, floors)
  for (const tenant of tenants) tenant.group = tenant.nextGroup
  refreshGroups(state, groups, kinds)
}

function comeBack(state: State, lane: Lane, floors: Floors): void {
  const { member, kind, standing } = lane
  const ring = member.nextGroup?.ring ?? state.ring
  const floor = floors.of(ring, kind)
  if (standing === 'parked') state.parked.remove(lane)
  if (member.group === member.nextGroup) {
    ring.enter(lane, floor)
    return
  }
  ringOf(state, member).leave(lane)
  ring.restore(lane, standing === 'idle' ? 'idle' : 'ready', lane.hasEntered ? floor : lane.pass)
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

/** A group stands at the top, kind by kind, exactly while one of its tenants waits. */
function refreshGroups(state: State, groups: ReadonlySet<Group>, kinds: readonly string[]): void {
  const entering: { readonly entry: Entry; readonly pass: number }[] = []
  const resting: Entry[] = []
  for (const group of groups) {
    for (const kind of state.kinds.keys()) {
      const isReady = group.ring.hasReady(kind)
      const entry = isReady ? groupEntryOf(state, group, kind) : group.entries.get(kind)
      if (!entry || isReady === (entry.standing === 'ready')) continue
      const pass = () => Math.max(floorOf(state, state.ring, { kind, kinds }), largestPass(entry, kinds))
      if (isReady) entering.push({ entry, pass: pass() })
      else resting.push(entry)
    }
  }
  for (const entry of resting) state.ring.rest(entry)
  for (const { entry, pass } of entering) state.ring.enter(entry, pass)
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
 * Whose passes tell where those of a kind begin: those of the claim's kinds that have no limits, and of the kind itself. While
 * a kind is paused or at its limit its passes stand still, and whoever began at one of them would be served alone for long.
 * What is of a kind that the claim does not ask for is measured against its own.
 */
function floorOf(
  state: State,
  ring: Ring,
  { kind, kinds }: { readonly kind: string; readonly kinds: readonly string[] },
): number {
  if (kinds.length === 1 || !kinds.includes(kind)) return ring.floor([kind], [kind])
  const counted = kinds.filter((each) => each === kind || isUnlimited(kindOf(state, each).limits))
  return ring.floor(counted, kinds)
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
