import type { Member } from './lane.js'
import { precedes } from './names.js'
import type { Candidate, Ring } from './ring.js'

/** Jobs that a member may have, in the order of first turns. */
export interface Share {
  readonly member: Member
  jobs: number
}

export interface Ask {
  readonly kinds: readonly string[]
  readonly wanted: number
  /** The most jobs of one turn. */
  readonly quantum: number
  /** What a job is expected to cost, to tell when a second turn would start. */
  readonly costOf: (candidate: Candidate) => number
}

/** Turns that are given out at once; a claim that wants more asks again. */
const TURNS_MAX = 64

interface Contender {
  readonly candidate: Candidate
  /** What a turn is expected to cost. */
  readonly cost: number
  turns: number
  startsAt: number
}

/**
 * Gives out turns: each goes to the member whose turn would start at the smallest pass, and the turn that starts last is
 * cut to what is left. A member far behind, or with a large weight, may have several.
 */
export function pick(ring: Ring, { kinds, wanted, quantum, costOf }: Ask): Share[] {
  const turns = Math.min(TURNS_MAX, Math.ceil(wanted / quantum))
  const candidates = ring.candidates(kinds, turns)
  const [first] = candidates
  if (!first) return []
  if (candidates.length === 1) return [{ member: first.entry.member, jobs: Math.min(wanted, turns * quantum) }]
  const started: Contender[] = []
  let last: Contender | undefined
  for (let turn = 0; turn < turns; turn += 1) {
    const next = earliest(started, candidates, (candidate) => {
      return { candidate, cost: quantum * costOf(candidate), turns: 0, startsAt: candidate.pass }
    })
    next.turns += 1
    next.startsAt = next.candidate.pass + (next.turns * next.cost) / next.candidate.entry.member.weight
    last = next
  }
  const excess = Math.max(0, turns * quantum - wanted)
  return started.map((contender) => ({
    member: contender.candidate.entry.member,
    jobs: contender.turns * quantum - (contender === last ? excess : 0),
  }))
}

/** Candidates stand in the order of their first turns, so only the next of them competes with those that have had one. */
function earliest(
  started: Contender[],
  candidates: readonly Candidate[],
  contend: (candidate: Candidate) => Contender,
): Contender {
  let best: Contender | undefined
  for (const contender of started) if (!best || isSooner(contender, best)) best = contender
  const newcomer = candidates[started.length]
  if (!newcomer) return best as Contender
  if (best && best.startsAt < newcomer.pass) return best
  const contender = contend(newcomer)
  if (best && !isSooner(contender, best)) return best
  started.push(contender)
  return contender
}

function isSooner(one: Contender, other: Contender): boolean {
  if (one.startsAt !== other.startsAt) return one.startsAt < other.startsAt
  return precedes(one.candidate.entry.member, other.candidate.entry.member)
}
