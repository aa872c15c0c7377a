import { Heap } from '../scheduler/heap.js'

/** Who shares: by weight among the tenants of the group, and the group by its own among all. */
export interface Party {
  readonly weight: number
  readonly group: string | undefined
}

interface Member {
  readonly name: string
  readonly weight: number
  readonly group: Group
  /** The account of its group at which all that it has enqueued is served; in the past when it waits for nothing. */
  doneAt: number
  enqueued: number
  slot: number
}

interface Group {
  readonly weight: number
  /** Those that wait, the first to be done first. */
  readonly waiting: Heap<Member>
  waitingWeight: number
  /** What a tenant of weight 1 that waited all the time has got. */
  account: number
  /** The account at the top when this one was last brought up to date, and when the next of its tenants is done. */
  settledAt: number
  doneAt: number
  slot: number
}

/**
 * The ideal that no scheduler of whole jobs can reach: work is a fluid, and all that wait are served at the same time, each
 * by its weight, groups first (generalised processor sharing, Parekh and Gallager, 1993). What a tenant has got here is what
 * it was entitled to. A service costs the same however many wait.
 */
export class Entitlement {
  readonly #members = new Map<string, Member>()
  readonly #groups = new Map<string, Group>()
  /** Groups that wait, by the account at which the first of their tenants is done. */
  readonly #waiting = new Heap<Group>((one, other) => one.doneAt < other.doneAt)
  #waitingWeight = 0
  #account = 0

  /** Weights of groups; 1 where none is given. */
  constructor(parties: ReadonlyMap<string, Party>, groupWeights: ReadonlyMap<string, number>) {
    for (const [name, { weight, group }] of parties) {
      // A tenant without a group is one of its own, with the weight of the tenant.
      const key = group === undefined ? `tenant ${name}` : `group ${group}`
      const known = this.#groups.get(key) ?? newGroup(group === undefined ? weight : (groupWeights.get(group) ?? 1))
      this.#groups.set(key, known)
      this.#members.set(name, { name, weight, group: known, doneAt: 0, enqueued: 0, slot: -1 })
    }
  }

  /** The tenant enqueues work. */
  arrive(tenant: string, work: number): void {
    const member = this.#member(tenant)
    const { group } = member
    this.#settle(group)
    member.enqueued += work
    member.doneAt = Math.max(member.doneAt, group.account) + work / member.weight
    if (group.waiting.size === 0) this.#waitingWeight += group.weight
    if (member.slot >= 0) group.waiting.moved(member)
    else {
      group.waiting.push(member)
      group.waitingWeight += member.weight
    }
    this.#replace(group)
  }

  /** So much work is done, by whomever. */
  serve(work: number): void {
    let left = work
    for (let next = this.#waiting.first; next && left > 0; next = this.#waiting.first) {
      const needed = (next.doneAt - this.#account) * this.#waitingWeight
      if (needed > left) {
        this.#account += left / this.#waitingWeight
        return
      }
      left -= Math.max(0, needed)
      this.#account = Math.max(this.#account, next.doneAt)
      this.#finish(next)
    }
  }

  /** What the tenant was entitled to so far. */
  of(tenant: string): number {
    const member = this.#member(tenant)
    this.#settle(member.group)
    return member.enqueued - Math.max(0, member.doneAt - member.group.account) * member.weight
  }

  /** The first tenant of a group has got all that it enqueued. */
  #finish(group: Group): void {
    this.#settle(group)
    const done = group.waiting.shift()
    if (!done) return
    group.account = Math.max(group.account, done.doneAt)
    group.waitingWeight = group.waiting.size === 0 ? 0 : group.waitingWeight - done.weight
    if (group.waiting.size === 0) {
      this.#waiting.remove(group)
      this.#waitingWeight = this.#waiting.size === 0 ? 0 : this.#waitingWeight - group.weight
    } else this.#replace(group)
  }

  #settle(group: Group): void {
    if (group.waitingWeight > 0)
      group.account += (group.weight * (this.#account - group.settledAt)) / group.waitingWeight
    group.settledAt = this.#account
  }

  /** Says anew when the next tenant of the group is done. */
  #replace(group: Group): void {
    const left = Math.max(0, (group.waiting.first?.doneAt ?? 0) - group.account)
    group.doneAt = this.#account + (left * group.waitingWeight) / group.weight
    if (group.slot >= 0) this.#waiting.moved(group)
    else this.#waiting.push(group)
  }

  #member(tenant: string): Member {
    const member = this.#members.get(tenant)
    if (!member) throw new Error(`expected tenant ${tenant} to be among those that share`)
    return member
  }
}

function newGroup(weight: number): Group {
  const waiting = new Heap<Member>((one, other) => one.doneAt < other.doneAt)
  return { weight, waiting, waitingWeight: 0, account: 0, settledAt: 0, doneAt: 0, slot: -1 }
}
