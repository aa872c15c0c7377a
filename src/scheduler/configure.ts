import type { Group, Tenant } from './lane.js'
import {
  applyLimits,
  type GroupSettings,
  type LimitSettings,
  type QueueSettings,
  type TenantSettings,
} from './settings.js'
import { unpark } from './standing.js'
import { groupOf, keyOf, kindOf, ringOf, type State, signal, tenantOf } from './state.js'

/** Settings are written at once, and act on the jobs that wait at the next claim. */
export function configureQueue(state: State, settings: QueueSettings): void {
  applyLimits(state.limits, settings)
  const { charge, tenantConcurrency, tenantRate, keyConcurrency, keyRate } = settings
  if (charge !== undefined) state.charge = charge
  if (tenantConcurrency !== undefined) state.tenantDefaults.concurrency = tenantConcurrency ?? undefined
  if (tenantRate !== undefined) state.tenantDefaults.rate = tenantRate ?? undefined
  if (keyConcurrency !== undefined) state.keyDefaults.concurrency = keyConcurrency
  if (keyRate !== undefined) state.keyDefaults.rate = keyRate ?? undefined
  for (const lane of state.parked) state.freed.add(lane.member)
  for (const key of state.keys.values()) state.noticedKeys.add(key)
}

export function configureTenant(state: State, name: string, settings: TenantSettings): void {
  const tenant = tenantOf(state, name)
  applyLimits(tenant.limits, settings)
  if (settings.weight !== undefined) tenant.weight = settings.weight
  if (settings.group !== undefined)
    move(state, tenant, settings.group === null ? undefined : groupOf(state, settings.group))
  state.freed.add(tenant)
}

export function configureGroup(state: State, name: string, settings: GroupSettings): void {
  const group = groupOf(state, name)
  if (settings.weight !== undefined) group.weight = settings.weight
}

export function configureKind(state: State, name: string, settings: LimitSettings): void {
  applyLimits(kindOf(state, name).limits, settings)
}

export function configureKey(state: State, name: string, settings: LimitSettings): void {
  const key = keyOf(state, name)
  applyLimits(key.limits, settings)
  state.noticedKeys.add(key)
}

/** A pass counts in one ring only: a tenant that comes to another one begins there like one that was never served. */
function move(state: State, tenant: Tenant, group: Group | undefined): void {
  if (tenant.group === group) return
  const before = tenant.group
  for (const lane of tenant.entries.values()) {
    if (lane.standing === 'parked') unpark(state, lane)
    ringOf(state, tenant).leave(lane)
    lane.standing = 'idle'
    lane.pass = 0
    const entry = before?.entries.get(lane.kind)
    if (entry?.standing === 'ready' && !before?.ring.hasReady(lane.kind)) state.ring.rest(entry)
  }
  tenant.group = group
  for (const lane of tenant.entries.values()) {
    ringOf(state, tenant).rest(lane)
    signal(state, lane)
  }
}
