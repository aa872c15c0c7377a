import { discover } from './discover.js'
import { SECONDS_UNKNOWN } from './estimate.js'
import type { Job } from './job.js'
import { startKeyed } from './keys.js'
import type { Group, Lane, Tenant } from './lane.js'
import { pick, type Share } from './pick.js'
import type { Candidate, Ring } from './ring.js'
import { NO_DEFAULTS, roomOf, start } from './room.js'
import { type Quota, split } from './split.js'
import { park, rest } from './standing.js'
import { kindOf, ringOf, type State } from './state.js'

/** A turn takes an eighth of what is asked for: few turns when backlogs are deep, and single jobs alternate when few are asked for. */
const TURNS_OF_A_CLAIM = 8

/** One claim under way. */
interface Claim {
  readonly state: State
  readonly nowMs: number
  /** Those that still have room. */
  kinds: readonly string[]
  count: number
  perLane: number
  hasLookedAgain: boolean
  readonly jobs: Job[]
}

/** Starts up to `count` jobs of the kinds, least served first, and answers with them in the order of their turns. */
export function claim(
  state: State,
  ask: { readonly kinds: readonly string[]; readonly count: number; readonly nowMs: number },
): Job[] {
  const { kinds, count, nowMs } = ask
  discover(state, kinds, nowMs)
  const perLane = Math.ceil(count / TURNS_OF_A_CLAIM)
  const under: Claim = { state, nowMs, kinds, perLane, count: 0, hasLookedAgain: false, jobs: [] }
  under.count = Math.min(count, roomOf(state.limits, NO_DEFAULTS, nowMs))
  while (under.jobs.length < under.count) {
    under.kinds = under.kinds.filter((kind) => roomOf(kindOf(state, kind).limits, NO_DEFAULTS, nowMs) > 0)
    if (under.kinds.length === 0) break
    const shares = sharesOf(under, state.ring, under.count - under.jobs.length)
    if (shares.length === 0) break
    take(under, shares)
  }
  return under.jobs
}

/** Gives out turns at the top, and again inside of each group that has some. */
function sharesOf(claim: Claim, ring: Ring, wanted: number): Share[] {
  const { state, kinds, perLane } = claim
  const costOf = state.charge === 'time' ? (candidate: Candidate) => secondsOfNext(claim, candidate) : () => 1
  const shares = pick(ring, { kinds, wanted, quantum: perLane, costOf })
  if (!shares.some(({ member }) => member.isGroup)) return shares
  return shares.flatMap((share) =>
    share.member.isGroup ? sharesOf(claim, (share.member as Group).ring, share.jobs) : [share],
  )
}

/** What the next job of a member is expected to cost: that of its lane with the smallest pass. */
function secondsOfNext(claim: Claim, { entry }: Candidate): number {
  if (!entry.member.isGroup) return expectedSeconds(claim.state, entry as Lane)
  const [first] = (entry.member as Group).ring.candidates([entry.kind], 1)
  return first ? secondsOfNext(claim, first) : SECONDS_UNKNOWN
}

function expectedSeconds(state: State, lane: Lane): number {
  return lane.seconds ?? kindOf(state, lane.kind).seconds ?? SECONDS_UNKNOWN
}

/** Starts the jobs of one round of turns, and charges for them. */
function take(claim: Claim, shares: readonly Share[]): void {
  const quotas = quotasOf(claim, shares)
  const before = claim.jobs.length
  const taken = quotas.map((quota) => takeFrom(claim, quota))
  const isShort = claim.jobs.length < claim.count
  for (const [index, { lane, jobs }] of quotas.entries()) {
    const hasNoMore = isShort && (taken[index] ?? 0) < jobs
    if (hasNoMore || (claim.hasLookedAgain && lane.backlog.size === 0)) rest(claim.state, lane)
  }
  if (!isShort || quotas.length === 0) return
  // Where lanes are shallow, look at more of them for less from each.
  claim.perLane = Math.min(claim.perLane, Math.max(1, Math.floor((claim.jobs.length - before) / quotas.length)))
  claim.hasLookedAgain = true
}

/** What each lane may give, as far as its tenant and its kind have room. Tenants without room are parked. */
function quotasOf(claim: Claim, shares: readonly Share[]): Quota[] {
  const { state, kinds, nowMs } = claim
  const kindRooms = new Map(kinds.map((kind) => [kind, roomOf(kindOf(state, kind).limits, NO_DEFAULTS, nowMs)]))
  const quotas: Quota[] = []
  for (const share of shares) {
    const tenant = share.member as Tenant
    const room = roomOf(tenant.limits, state.tenantDefaults, nowMs)
    if (room === 0) {
      park(state, tenant, { kinds, nowMs })
      continue
    }
    for (const { lane, jobs } of split(readyLanes(tenant, kinds), Math.min(share.jobs, room))) {
      const kindRoom = kindRooms.get(lane.kind) ?? 0
      if (kindRoom === 0) continue
      kindRooms.set(lane.kind, kindRoom - Math.min(jobs, kindRoom))
      quotas.push({ lane, jobs: Math.min(jobs, kindRoom) })
    }
  }
  return quotas
}

function readyLanes(tenant: Tenant, kinds: readonly string[]): Lane[] {
  const lanes: Lane[] = []
  for (const kind of kinds) {
    const lane = tenant.entries.get(kind)
    if (lane?.standing === 'ready') lanes.push(lane)
  }
  return lanes
}

/** Starts jobs of a lane, and charges all ready lanes of its tenant. Answers with how many it had. */
function takeFrom(claim: Claim, { lane, jobs }: Quota): number {
  const { state, kinds, nowMs } = claim
  const wanted = Math.min(jobs, claim.count - claim.jobs.length)
  const seconds = state.charge === 'time' ? expectedSeconds(state, lane) : 0
  let taken = 0
  for (; taken < wanted; taken += 1) {
    const job = lane.backlog.shift()
    if (!job) break
    job.standing = 'running'
    job.attempt += 1
    job.claimedAtMs = nowMs
    job.charged = seconds
    if (job.key !== undefined) startKeyed(state, job, nowMs)
    claim.jobs.push(job)
  }
  if (taken === 0) return 0
  const started = { jobs: taken, nowMs }
  const { member } = lane
  start(state.limits, NO_DEFAULTS, started)
  start(kindOf(state, lane.kind).limits, NO_DEFAULTS, started)
  start(member.limits, state.tenantDefaults, started)
  const service = state.charge === 'time' ? taken * seconds : taken
  ringOf(state, member).charge(member, kinds, service)
  if (member.group) state.ring.charge(member.group, kinds, service)
  return taken
}
