import {
  applyLimits,
  type GroupSettings,
  type LimitSettings,
  type QueueSettings,
  type TenantSettings,
} from './settings.js'
import { groupOf, keyOf, kindOf, type State, tenantOf } from './state.js'

/** Settings are written at once, and act on the jobs that wait at the next claim. */
export function configureQueue(state: State, settings: QueueSettings): void {
  applyLimits(state.limits, settings)
  const { charge, tenantConcurrency, tenantRate, keyConcurrency, keyRate } = settings
  if (charge !== undefined) state.charge = charge
  if (tenantConcurrency !== undefined) state.tenantDefaults.concurrency = tenantConcurrency ?? undefined
  if (tenantRate !== undefined) state.tenantDefaults.rate = tenantRate ?? undefined
  if (keyConcurrency !== undefined) state.keyDefaults.concurrency = keyConcurrency
  if (keyRate !== undefined) state.keyDefaults.rate = keyRate ?? undefined
  const { limits, tenantDefaults, keyDefaults } = state
  const set = [limits.concurrency, limits.rate, tenantDefaults.concurrency, tenantDefaults.rate, keyDefaults.rate]
  state.isGoverned ||=
    state.charge === 'time' || keyDefaults.concurrency !== 1 || set.some((each) => each !== undefined)
  if (tenantConcurrency !== undefined || tenantRate !== undefined) {
    for (const lane of state.parked) state.noticed.add(lane.member)
  }
  if (keyConcurrency !== undefined || keyRate !== undefined) {
    for (const key of state.keys.values()) state.noticedKeys.add(key)
  }
}

export function configureTenant(state: State, name: string, settings: TenantSettings): void {
  state.isGoverned = true
  const tenant = tenantOf(state, name)
  applyLimits(tenant.limits, settings)
  if (settings.weight !== undefined) tenant.weight = settings.weight
  if (settings.group !== undefined)
    tenant.nextGroup = settings.group === null ? undefined : groupOf(state, settings.group)
  state.noticed.add(tenant)
}

export function configureGroup(state: State, name: string, settings: GroupSettings): void {
  state.isGoverned = true
  const group = groupOf(state, name)
  if (settings.weight !== undefined) group.weight = settings.weight
}

export function configureKind(state: State, name: string, settings: LimitSettings): void {
  state.isGoverned = true
  applyLimits(kindOf(state, name).limits, settings)
}

export function configureKey(state: State, name: string, settings: Omit<LimitSettings, 'paused'>): void {
  state.isGoverned = true
  const key = keyOf(state, name)
  applyLimits(key.limits, settings)
  state.noticedKeys.add(key)
}
