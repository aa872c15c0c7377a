import type { Heap, Slotted } from './heap.js'
import { type Job, orderedJobs } from './job.js'
import { Ring } from './ring.js'
import { type Allowance, allowance } from './settings.js'

/** `ready`: may be picked. `parked`: its tenant is paused or at a limit, so a claim does not see it. */
export type Standing = 'idle' | 'ready' | 'parked'

/** Somebody who shares in a ring, a tenant or a group: its name decides between equal passes. */
export interface Member {
  readonly name: string
  readonly isGroup: boolean
  weight: number
  readonly entries: Map<string, Entry>
}

/** What a member has of one kind. */
export interface Entry extends Slotted {
  readonly member: Member
  readonly kind: string
  /** Virtual time: service received divided by weight. */
  pass: number
  standing: Standing
}

/** A tenant's jobs of one kind. */
export interface Lane extends Entry {
  readonly member: Tenant
  readonly backlog: Heap<Job>
  /** Whether something arrived since the last claim that asked for the kind. */
  isSignalled: boolean
  /** Whether it was ever ready. */
  hasEntered: boolean
  parkedUntilMs: number
  /** How long a job is expected to run, learned from those that have. */
  seconds: number | undefined
  /** What has ended since the last claim. */
  measured: { jobs: number; seconds: number; surplus: number } | undefined
}

export interface Tenant extends Member {
  readonly isGroup: false
  /** Whose share it has a part of. */
  group: Group | undefined
  /** The group to which it belongs from the next claim on. */
  nextGroup: Group | undefined
  readonly entries: Map<string, Lane>
  readonly limits: Allowance
}

/** Shares at the top as a tenant without a group does, and its tenants share what it gets. */
export interface Group extends Member {
  readonly isGroup: true
  readonly ring: Ring
}

export function newTenant(name: string): Tenant {
  return {
    name,
    isGroup: false,
    group: undefined,
    nextGroup: undefined,
    weight: 1,
    entries: new Map(),
    limits: allowance(),
  }
}

export function newGroup(name: string): Group {
  return { name, isGroup: true, weight: 1, entries: new Map(), ring: new Ring() }
}

export function newLane(member: Tenant, kind: string): Lane {
  const backlog = orderedJobs()
  const learned = { seconds: undefined, measured: undefined }
  return {
    member,
    kind,
    pass: 0,
    standing: 'idle',
    slot: -1,
    backlog,
    isSignalled: false,
    hasEntered: false,
    parkedUntilMs: 0,
    ...learned,
  }
}

export function newEntry(member: Member, kind: string): Entry {
  return { member, kind, pass: 0, standing: 'idle', slot: -1 }
}
