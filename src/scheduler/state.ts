import { Heap } from './heap.js'
import { dueJobs, type Job, orderedJobs } from './job.js'
import { type Group, type Lane, newEntry, newGroup, newLane, newTenant, type Tenant } from './lane.js'
import { isBefore } from './names.js'
import { Ring } from './ring.js'
import { type Allowance, allowance, type Charge, type Defaults } from './settings.js'

export interface Kind {
  readonly name: string
  readonly limits: Allowance
  /** Lanes that have had an arrival since a claim last asked for the kind. */
  signalled: Lane[]
  readonly scheduled: Heap<Job>
  /** How long a job is expected to run, for tenants of which nothing is known. */
  seconds: number | undefined
}

export interface Key {
  readonly name: string
  readonly limits: Allowance
  /** Jobs that are due and wait for the key. */
  readonly blocked: Heap<Job>
  /** Jobs that were let through and have not started. */
  readonly admitted: Set<Job>
  /** Jobs that have run and are due again later: with a limit of 1 they keep their place. */
  readonly returning: Set<Job>
}

/** Everything that a claim of one queue reads and writes. */
export interface State {
  readonly limits: Allowance
  readonly tenantDefaults: Defaults
  readonly keyDefaults: Defaults
  charge: Charge
  /** Whether anything was ever set: then a claim looks at more than the ring. */
  isGoverned: boolean
  readonly ring: Ring
  readonly tenants: Map<string, Tenant>
  readonly groups: Map<string, Group>
  readonly kinds: Map<string, Kind>
  readonly keys: Map<string, Key>
  readonly jobs: Map<number, Job>
  /** Lanes by the time at which a claim looks at them again. */
  readonly parked: Heap<Lane>
  /** Tenants of which a slot is free or a setting has changed, so that the next claim looks at them again. */
  readonly noticed: Set<Tenant>
  readonly measured: Set<Lane>
  /** Keys that have work or room that the next claim must look at. */
  readonly noticedKeys: Set<Key>
  /** Keys that wait for a token, and until when. */
  readonly awaitedKeys: Map<Key, number>
}

export function newState(): State {
  return {
    limits: allowance(),
    tenantDefaults: { concurrency: undefined, rate: undefined },
    keyDefaults: { concurrency: 1, rate: undefined },
    charge: 'jobs',
    isGoverned: false,
    ring: new Ring(),
    tenants: new Map(),
    groups: new Map(),
    kinds: new Map(),
    keys: new Map(),
    jobs: new Map(),
    parked: new Heap<Lane>(isSooner),
    noticed: new Set(),
    measured: new Set(),
    noticedKeys: new Set(),
    awaitedKeys: new Map(),
  }
}

export function tenantOf(state: State, name: string): Tenant {
  return known(state.tenants, name, newTenant)
}

export function groupOf(state: State, name: string): Group {
  return known(state.groups, name, newGroup)
}

export function kindOf(state: State, name: string): Kind {
  return known(state.kinds, name, () => ({
    name,
    limits: allowance(),
    signalled: [],
    scheduled: dueJobs(),
    seconds: undefined,
  }))
}

export function keyOf(state: State, name: string): Key {
  return known(state.keys, name, () => ({
    name,
    limits: allowance(),
    blocked: orderedJobs(),
    admitted: new Set(),
    returning: new Set(),
  }))
}

export function laneOf(state: State, tenantName: string, kind: string): Lane {
  const tenant = tenantOf(state, tenantName)
  return known(tenant.entries, kind, () => {
    kindOf(state, kind)
    const lane = newLane(tenant, kind)
    ringOf(state, tenant).rest(lane)
    return lane
  })
}

/** The ring in which a tenant's pass counts. */
export function ringOf(state: State, tenant: Tenant): Ring {
  return tenant.group?.ring ?? state.ring
}

/** What a group has of a kind at the top. */
export function groupEntryOf(state: State, group: Group, kind: string) {
  return known(group.entries, kind, () => {
    const entry = newEntry(group, kind)
    state.ring.rest(entry)
    return entry
  })
}

/** So that the next claim that asks for the kind makes the lane ready. */
export function signal(state: State, lane: Lane): void {
  if (lane.isSignalled || lane.standing === 'ready') return
  lane.isSignalled = true
  kindOf(state, lane.kind).signalled.push(lane)
}

function known<Value>(all: Map<string, Value>, name: string, create: (name: string) => Value): Value {
  const found = all.get(name)
  if (found) return found
  const created = create(name)
  all.set(name, created)
  return created
}

function isSooner(one: Lane, other: Lane): boolean {
  if (one.parkedUntilMs !== other.parkedUntilMs) return one.parkedUntilMs < other.parkedUntilMs
  return one.member === other.member ? isBefore(one.kind, other.kind) : isBefore(one.member.name, other.member.name)
}
