import type { Rate } from '../scheduler/bucket.js'
import type { Scheduler } from '../scheduler/scheduler.js'
import type { Allowance, LimitSettings } from '../scheduler/settings.js'
import { parkLane } from '../scheduler/standing.js'
import { groupEntryOf, groupOf, keyOf, kindOf, laneOf, ringOf, tenantOf } from '../scheduler/state.js'

/** Rows of a live queue, with the names of their columns, as `simulate_state` reads them. */
export interface LiveState {
  readonly now_ms: number
  readonly queue: (LimitRow & Readonly<QueueRow>) | null
  readonly tenants:
    | readonly (LimitRow & { readonly tenant: string; readonly weight: number; readonly grp: string | null })[]
    | null
  readonly groups: readonly { readonly name: string; readonly weight: number }[] | null
  readonly kinds: readonly (LimitRow & { readonly kind: string })[] | null
  readonly keys: readonly (LimitRow & { readonly key: string })[] | null
  readonly buckets:
    | readonly {
        readonly scope: 'queue' | 'tenant' | 'kind' | 'key'
        readonly name: string
        readonly full_at_ms: number
      }[]
    | null
  readonly lanes: readonly LaneRow[] | null
  readonly nodes:
    | readonly { readonly grp: string; readonly kind: string; readonly pass: number; readonly ready: boolean }[]
    | null
  readonly expected: readonly { readonly kind: string; readonly seconds: number }[] | null
  readonly running:
    | readonly { readonly tenant: string; readonly kind: string; readonly key: string | null; readonly jobs: number }[]
    | null
  readonly jobs: readonly JobRow[] | null
  readonly keyed: readonly JobRow[] | null
}

interface LimitRow {
  readonly paused_at?: string | null
  readonly concurrency: number | null
  readonly rate_per_second: number | null
  readonly burst: number | null
}

interface QueueRow {
  strategy: string
  charge: 'jobs' | 'time'
  tenant_concurrency: number | null
  tenant_rate_per_second: number | null
  tenant_burst: number | null
  key_concurrency: number
  key_rate_per_second: number | null
  key_burst: number | null
}

interface LaneRow {
  readonly tenant: string
  readonly kind: string
  readonly grp: string
  readonly pass: number
  readonly ready: boolean
  readonly parked: boolean
  readonly parked_until_ms: number | null
  readonly seconds: number | null
}

export interface JobRow {
  readonly id: string
  readonly tenant: string
  readonly kind: string
  readonly key: string | null
  readonly state: string
  readonly order_at_ms: number
}

/** When a lane is looked at again that waits for a slot or a resume. */
const LOOK_AGAIN_MS = 5_000

/** Puts a scheduler where the queue is. */
export function load(scheduler: Scheduler, live: LiveState): void {
  loadSettings(scheduler, live)
  loadUse(scheduler, live)
  loadRing(scheduler, live)
  for (const row of [...(live.jobs ?? []), ...(live.keyed ?? [])]) {
    const { tenant, kind, key, order_at_ms: orderAtMs } = row
    scheduler.enqueue({ tenant, kind, orderAtMs, ...(key !== null && { key }) }, live.now_ms)
  }
}

function loadSettings(scheduler: Scheduler, { queue, tenants, groups, kinds, keys }: LiveState): void {
  if (queue) {
    scheduler.configureQueue({
      ...limitsOf(queue),
      charge: queue.charge,
      tenantConcurrency: queue.tenant_concurrency,
      tenantRate: rateOf(queue.tenant_rate_per_second, queue.tenant_burst),
      keyConcurrency: queue.key_concurrency,
      keyRate: rateOf(queue.key_rate_per_second, queue.key_burst),
    })
  }
  for (const row of tenants ?? []) {
    scheduler.configureTenant(row.tenant, { ...limitsOf(row), weight: row.weight, group: row.grp })
    const tenant = tenantOf(scheduler.state, row.tenant)
    tenant.group = tenant.nextGroup
  }
  for (const { name, weight } of groups ?? []) scheduler.configureGroup(name, { weight })
  for (const row of kinds ?? []) scheduler.configureKind(row.kind, limitsOf(row))
  for (const row of keys ?? []) scheduler.configureKey(row.key, limitsOf(row))
  scheduler.state.noticed.clear()
}

/** What runs and what tokens are left. */
function loadUse({ state }: Scheduler, { buckets, running, expected }: LiveState): void {
  const allowanceOf = (scope: 'queue' | 'tenant' | 'kind' | 'key', name: string): Allowance => {
    if (scope === 'queue') return state.limits
    if (scope === 'tenant') return tenantOf(state, name).limits
    return scope === 'kind' ? kindOf(state, name).limits : keyOf(state, name).limits
  }
  for (const { scope, name, full_at_ms } of buckets ?? []) allowanceOf(scope, name).fullAtMs = full_at_ms
  for (const { tenant, kind, key, jobs } of running ?? []) {
    state.limits.running += jobs
    allowanceOf('tenant', tenant).running += jobs
    allowanceOf('kind', kind).running += jobs
    if (key !== null) allowanceOf('key', key).running += jobs
  }
  for (const { kind, seconds } of expected ?? []) kindOf(state, kind).seconds = seconds
}

function loadRing({ state }: Scheduler, { lanes, nodes, now_ms: nowMs }: LiveState): void {
  for (const row of lanes ?? []) {
    const lane = laneOf(state, row.tenant, row.kind)
    lane.hasEntered = true
    lane.seconds = row.seconds ?? undefined
    ringOf(state, lane.member).restore(lane, row.ready ? 'ready' : 'idle', row.pass)
    if (row.parked) parkLane(state, lane, row.parked_until_ms ?? nowMs + LOOK_AGAIN_MS)
  }
  for (const { grp, kind, pass, ready } of nodes ?? []) {
    state.ring.restore(groupEntryOf(state, groupOf(state, grp), kind), ready ? 'ready' : 'idle', pass)
  }
}

function limitsOf({ paused_at: pausedAt, concurrency, rate_per_second: perSecond, burst }: LimitRow): LimitSettings {
  return { paused: (pausedAt ?? null) !== null, concurrency, rate: rateOf(perSecond, burst) }
}

function rateOf(perSecond: number | null, burst: number | null): Rate | null {
  return perSecond === null || burst === null ? null : { perSecond, burst }
}
