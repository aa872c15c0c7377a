import type { Entry, Member } from './lane.js'
import { precedes } from './names.js'
import type { Candidate, Ring } from './ring.js'

/** Jobs that a member may have, in the order of first turns. */
export interface Share {
  readonly member: Member
  readonly jobs: number
}

export interface Ask {
  readonly kinds: readonly string[]
  readonly wanted: number
  /** The most jobs of one turn. */
  readonly quantum: number
  /** What a job is expected to cost, which tells when a second turn would start. */
  readonly costOf: (entry: Entry) => number
}

/** Turns that are given out at once; a claim that wants more asks again. */
const TURNS_MAX = 64

/** A candidate that has turns. */
interface Contender {
  readonly candidate: Candidate
  readonly step: number
  turns: number
  /** Where its next turn would start. */
  startsAt: number
}

/**
 * Gives out turns: each goes to the member whose turn would start at the smallest pass, and the turn that starts last is
 * cut to what is left. A member far behind, or with a large weight, may have several.
 */
export function pick(ring: Ring, { kinds, wanted, quantum, costOf }: Ask): Share[] {
  const turns = Math.min(TURNS_MAX, Math.ceil(wanted / quantum))
  const candidates = ring.candidates(kinds, turns, costOf)
  const [first] = candidates
  if (!first) return []
  if (candidates.length === 1) return [{ member: first.member, jobs: Math.min(wanted, turns * quantum) }]
  const started: Contender[] = []
  let last: Contender | undefined
  for (let turn = 0; turn < turns; turn += 1) {
    last = earliest(started, candidates, quantum)
    last.turns += 1
    last.startsAt = last.candidate.pass + last.turns * last.step
  }
  const excess = Math.max(0, turns * quantum - wanted)
  return started.map((contender) => ({
    member: contender.candidate.member,
    jobs: contender.turns * quantum - (contender === last ? excess : 0),
  }))
}

/** Candidates stand in the order of their first turns, so only the next of them competes with those that have had one. */
function earliest(started: Contender[], candidates: readonly Candidate[], quantum: number): Contender {
  let best: Contender | undefined
  for (const contender of started) if (!best || isSooner(contender, best)) best = contender
  const candidate = candidates[started.length]
  if (best && (!candidate || best.startsAt < candidate.pass)) return best
  const { member, pass, cost } = candidate as Candidate
  const newcomer = {
    candidate: candidate as Candidate,
    step: (quantum * cost) / member.weight,
    turns: 0,
    startsAt: pass,
  }
  if (best && !isSooner(newcomer, best)) return best
  started.push(newcomer)
  return newcomer
}

function isSooner(one: Contender, other: Contender): boolean {
  if (one.startsAt !== other.startsAt) return one.startsAt < other.startsAt
  return precedes(one.candidate.member, other.candidate.member)
}
