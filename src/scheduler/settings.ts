import type { Rate } from './bucket.js'

/** What a turn costs its tenant: jobs, or the seconds for which they run. */
export type Charge = 'jobs' | 'time'

/** A patch: what is absent stays as it is, and null removes a setting. */
export interface LimitSettings {
  readonly paused?: boolean
  /** How many of its jobs may run at once. */
  readonly concurrency?: number | null
  readonly rate?: Rate | null
}

export interface QueueSettings extends LimitSettings {
  readonly charge?: Charge
  /** For each tenant that has none of its own; the same for keys. */
  readonly tenantConcurrency?: number | null
  readonly tenantRate?: Rate | null
  readonly keyConcurrency?: number
  readonly keyRate?: Rate | null
}

export interface TenantSettings extends LimitSettings {
  readonly weight?: number
  readonly group?: string | null
}

export interface GroupSettings {
  readonly weight?: number
}

/** What may start, of a queue, a tenant, a kind or a key. */
export interface Allowance {
  paused: boolean
  concurrency: number | undefined
  rate: Rate | undefined
  running: number
  fullAtMs: number
}

export function allowance(): Allowance {
  return { paused: false, concurrency: undefined, rate: undefined, running: 0, fullAtMs: 0 }
}

export function isUnlimited({ paused, concurrency, rate }: Allowance): boolean {
  return !paused && concurrency === undefined && rate === undefined
}

export function applyLimits(target: Allowance, settings: LimitSettings): void {
  if (settings.paused !== undefined) target.paused = settings.paused
  if (settings.concurrency !== undefined) target.concurrency = settings.concurrency ?? undefined
  if (settings.rate !== undefined) target.rate = settings.rate ?? undefined
}

/** What holds for those that have no setting of their own. */
export interface Defaults {
  concurrency: number | undefined
  rate: Rate | undefined
}
