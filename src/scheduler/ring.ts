import { Heap } from './heap.js'
import type { Entry, Member } from './lane.js'
import { precedes } from './names.js'

/** A member that may have turns, with the smallest pass of its ready entries. */
export interface Candidate {
  readonly member: Member
  readonly pass: number
  /** What a job is expected to cost. */
  readonly cost: number
}

interface Seats {
  readonly ready: Heap<Entry>
  readonly idle: Heap<Entry>
}

/**
 * Who shares with whom, in the order of the pass: start-time fair queueing (Goyal, Vin and Cheng, 1996). There is one
 * ring at the top and one in each group. Its entries are kept by kind, since a claim names the kinds that it asks for
 * and neither reads nor writes anything of the others.
 */
export class Ring {
  readonly #seats = new Map<string, Seats>()

  /** Where those begin that enter: at the least pass of all that wait or, when nobody does, where service ended. */
  floor(counted: readonly string[], kinds: readonly string[]): number {
    let least = Number.POSITIVE_INFINITY
    for (const kind of counted) least = Math.min(least, this.#seats.get(kind)?.ready.first?.pass ?? least)
    if (least < Number.POSITIVE_INFINITY) return least
    let most = 0
    for (const kind of kinds) most = Math.max(most, this.#seats.get(kind)?.idle.first?.pass ?? 0)
    return most
  }

  readyCount(kind: string): number {
    return this.#seats.get(kind)?.ready.size ?? 0
  }

  hasReady(kind: string): boolean {
    return this.readyCount(kind) > 0
  }

  /** Makes an entry ready, at this pass or at its own, whichever is larger. */
  enter(entry: Entry, pass: number): void {
    if (entry.standing === 'ready') return
    this.leave(entry)
    entry.pass = Math.max(entry.pass, pass)
    this.#place(entry, 'ready')
  }

  rest(entry: Entry): void {
    this.leave(entry)
    this.#place(entry, 'idle')
  }

  park(entry: Entry): void {
    this.leave(entry)
    this.#place(entry, 'parked')
  }

  /** Puts an entry where it was when its state was saved. */
  restore(entry: Entry, standing: Entry['standing'], pass: number): void {
    this.leave(entry)
    entry.pass = pass
    this.#place(entry, standing)
  }

  /** Takes an entry out, for another ring or another place here. */
  leave(entry: Entry): void {
    if (entry.slot < 0 || entry.standing === 'parked') return
    const seats = this.#seatsOf(entry.kind)
    if (entry.standing === 'ready') seats.ready.remove(entry)
    else seats.idle.remove(entry)
  }

  /** Charges all ready entries of the kinds alike, so that it makes no difference how many kinds a member uses. */
  charge(member: Member, kinds: readonly string[], service: number): void {
    for (const kind of kinds) {
      const entry = member.entries.get(kind)
      if (entry?.standing === 'ready') this.move(entry, service)
    }
  }

  move(entry: Entry, service: number): void {
    entry.pass += service / entry.member.weight
    if (entry.slot < 0 || entry.standing === 'parked') return
    const seats = this.#seatsOf(entry.kind)
    if (entry.standing === 'ready') seats.ready.moved(entry)
    else seats.idle.moved(entry)
  }

  /** The members with the smallest passes, at most so many of them, with the largest cost among their entries. */
  candidates(kinds: readonly string[], count: number, costOf: (entry: Entry) => number): Candidate[] {
    const [only] = kinds
    if (kinds.length === 1 && only !== undefined) {
      const leading = this.#seats.get(only)?.ready.leading(count) ?? []
      return leading.map((entry) => ({ member: entry.member, pass: entry.pass, cost: costOf(entry) }))
    }
    const lowest = new Map<Member, { member: Member; pass: number; cost: number }>()
    for (const kind of kinds) {
      for (const entry of this.#seats.get(kind)?.ready.leading(count) ?? []) {
        const { member, pass } = entry
        const known = lowest.get(member)
        if (!known) lowest.set(member, { member, pass, cost: costOf(entry) })
        else {
          known.pass = Math.min(known.pass, pass)
          known.cost = Math.max(known.cost, costOf(entry))
        }
      }
    }
    return [...lowest.values()].sort((one, other) => (comesFirst(one, other) ? -1 : 1)).slice(0, count)
  }

  #seatsOf(kind: string): Seats {
    const known = this.#seats.get(kind)
    if (known) return known
    const seats = { ready: new Heap(isAhead), idle: new Heap(isBehind) }
    this.#seats.set(kind, seats)
    return seats
  }

  #place(entry: Entry, standing: Entry['standing']): void {
    entry.standing = standing
    if (standing === 'ready') this.#seatsOf(entry.kind).ready.push(entry)
    else if (standing === 'idle') this.#seatsOf(entry.kind).idle.push(entry)
  }
}

function isAhead(one: Entry, other: Entry): boolean {
  return comesFirst(one, other)
}

function isBehind(one: Entry, other: Entry): boolean {
  return one.pass > other.pass
}

/** The order of turns: by the pass, then by the name. */
export function comesFirst(one: Placed, other: Placed): boolean {
  return one.pass < other.pass || (one.pass === other.pass && precedes(one.member, other.member))
}

interface Placed {
  readonly member: Member
  readonly pass: number
}
