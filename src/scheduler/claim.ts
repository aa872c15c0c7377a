import { discover } from './discover.js'
import { SECONDS_LEAST, SECONDS_UNKNOWN } from './estimate.js'
import type { Job } from './job.js'
import { startKeyed } from './keys.js'
import type { Entry, Group, Lane, Tenant } from './lane.js'
import { pick, type Share } from './pick.js'
import type { Ring } from './ring.js'
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
  /** All that were asked for: turns are charged in all of them. */
  readonly kinds: readonly string[]
  /** Those that still have room. */
  open: readonly string[]
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
  const under: Claim = { state, nowMs, kinds, open: kinds, perLane, count, hasLookedAgain: false, jobs: [] }
  under.count = Math.min(count, roomOf(state.limits, NO_DEFAULTS, nowMs))
  while (under.jobs.length < under.count) {
    under.open = kinds.filter((kind) => roomOf(kindOf(state, kind).limits, NO_DEFAULTS, nowMs) > 0)
    if (under.open.length === 0) break
    const shares = sharesOf(under, state.ring, under.count - under.jobs.length)
    if (shares.length === 0) break
    take(under, shares)
  }
  return under.jobs
}

/** Gives out turns at the top, and again inside of each group that has some. */
function sharesOf(claim: Claim, ring: Ring, wanted: number): Share[] {
  const { state, open, perLane } = claim
  const costOf = state.charge === 'time' ? (entry: Entry) => expectedSeconds(state, entry) : () => 1
  const shares = pick(ring, { kinds: open, wanted, quantum: perLane, costOf })
  if (!shares.some(({ member }) => member.isGroup)) return shares
  return shares.flatMap((share) =>
    share.member.isGroup ? sharesOf(claim, (share.member as Group).ring, share.jobs) : [share],
  )
}

/** What a job of a lane is charged, or of a group expected to be. */
function expectedSeconds(state: State, entry: Entry): number {
  const own = entry.member.isGroup ? undefined : (entry as Lane).seconds
  return Math.max(SECONDS_LEAST, own ?? kindOf(state, entry.kind).seconds ?? SECONDS_UNKNOWN)
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
  const { state, open, nowMs } = claim
  const kindRooms = new Map(open.map((kind) => [kind, roomOf(kindOf(state, kind).limits, NO_DEFAULTS, nowMs)]))
  const turn = plainTurn(claim, shares)
  const quotas: Quota[] = []
  for (const share of shares) {
    const tenant = share.member as Tenant
    const room = roomOf(tenant.limits, state.tenantDefaults, nowMs)
    if (room === 0) {
      park(state, tenant, nowMs)
      continue
    }
    const jobsOfTenant = turn ?? Math.min(share.jobs, room)
    for (const { lane, jobs } of split(readyLanes(tenant, open), jobsOfTenant, open.length)) {
      const kindRoom = kindRooms.get(lane.kind) ?? 0
      kindRooms.set(lane.kind, kindRoom - Math.min(jobs, kindRoom))
      quotas.push({ lane, jobs: Math.min(jobs, kindRoom) })
    }
  }
  return quotas
}

/**
 * The common case: one kind, no settings, and nobody so far behind as to get a second turn before the last of these has had
 * its first, or one tenant alone. Then the database gives everybody a whole turn, and cuts the last when the batch is full.
 */
function plainTurn({ state, kinds, perLane, jobs, count }: Claim, shares: readonly Share[]): number | undefined {
  const [only] = kinds
  if (state.isGoverned || kinds.length > 1 || only === undefined) return undefined
  const wanted = count - jobs.length
  if (state.ring.readyCount(only) === 1) return wanted
  if (shares.length < Math.ceil(wanted / perLane)) return undefined
  const passOf = (share: Share | undefined) => share?.member.entries.get(only)?.pass ?? 0
  return passOf(shares.at(-1)) - passOf(shares[0]) < perLane ? perLane : undefined
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
