import { type Distribution, distributionOf } from '../workload/statistics.js'
import type { WorkloadJob } from '../workload/workload.js'
import type { Entitlement } from './entitlement.js'
import type { RunOutcome } from './run.js'

type Waits = Pick<Distribution, 'p50' | 'p95' | 'p99'>

/** What a tenant got. Part of what `--json` prints: members are added, never renamed or removed. */
export interface TenantFigures {
  readonly tenant: string
  readonly jobs: number
  /** Its part of the service in the first half of the run: in the end everybody has got everything. */
  readonly receivedShare: number
  /** The part that it would have had then, had all that waited been served at the same time, by weight. */
  readonly entitledShare: number
  readonly waitMs: Waits | null
}

export interface RunFigures {
  readonly tenants: readonly TenantFigures[]
  /** Jain's index of received over entitled: 1 is fair, 1/n is one tenant getting everything. */
  readonly jain: number | null
  readonly waitMs: Waits | null
  readonly dispatches: number
  readonly virtualMs: number
}

export function figuresOf(jobs: readonly WorkloadJob[], outcome: RunOutcome, entitlement: Entitlement): RunFigures {
  const { waitMs, received, dispatches, endMs } = outcome
  const waits = new Map<string, number[]>()
  for (const [place, { tenant }] of jobs.entries()) {
    const own = waits.get(tenant) ?? []
    waits.set(tenant, own)
    const wait = waitMs[place] ?? -1
    if (wait >= 0) own.push(wait)
  }
  const total = [...received.values()].reduce((sum, service) => sum + service, 0)
  const tenants = [...waits].map(([tenant, own]) => ({
    tenant,
    jobs: own.length,
    receivedShare: total === 0 ? 0 : (received.get(tenant) ?? 0) / total,
    entitledShare: total === 0 ? 0 : entitlement.of(tenant) / total,
    waitMs: waitsOf(own),
  }))
  return {
    tenants: tenants.toSorted((one, other) => other.jobs - one.jobs || (one.tenant < other.tenant ? -1 : 1)),
    jain: jainOf(tenants),
    waitMs: waitsOf(waitMs.filter((wait) => wait >= 0)),
    dispatches,
    virtualMs: endMs,
  }
}

function waitsOf(waits: Iterable<number>): Waits | null {
  const distribution = distributionOf(waits)
  return distribution ? { p50: distribution.p50, p95: distribution.p95, p99: distribution.p99 } : null
}

function jainOf(tenants: readonly TenantFigures[]): number | null {
  const ratios = tenants.flatMap(({ receivedShare, entitledShare }) =>
    entitledShare > 0 ? [receivedShare / entitledShare] : [],
  )
  const squares = ratios.reduce((sum, ratio) => sum + ratio * ratio, 0)
  if (squares === 0) return null
  return ratios.reduce((sum, ratio) => sum + ratio, 0) ** 2 / (ratios.length * squares)
}
