/** How a queue decides whose job is next. */
export const STRATEGIES = ['fair', 'fifo', 'round-robin'] as const
export type Strategy = (typeof STRATEGIES)[number]

/** What a queue keeps of its finished jobs. Discarded jobs are always kept whole, or they could not be looked into. */
export const HISTORY_MODES = ['keep', 'keep-without-payload', 'none'] as const
export type HistoryMode = (typeof HISTORY_MODES)[number]

/** What a turn costs its tenant: one for each job, or the seconds for which its jobs run. */
export const CHARGES = ['jobs', 'time'] as const
export type Charge = (typeof CHARGES)[number]

/** How many jobs may start: a token bucket, which holds `burst` tokens and gets `limit` of them every `perMs`. */
export interface RateLimit {
  /** Starts in each `perMs`. Together at least 0.000001 and at most 1,000,000 a second. */
  readonly limit: number
  /** Milliseconds, 1 to 1,000,000,000. Default 1,000. */
  readonly perMs?: number
  /** How many may start at once after a rest, 1 to 1,000,000. Default: one second's worth, rounded up. */
  readonly burst?: number
}

/** What is promised to those who wait: the share of jobs that start within a time of being due. Reported, not enforced. */
export interface Objective {
  /** Milliseconds, 1 to 86,400,000 (one day). */
  readonly waitMs: number
  /** 0.5 to 0.9999. */
  readonly share: number
}

export interface QueueSettings {
  /** Whose job is next. Default 'fair'. The others refuse what acts on single tenants or kinds, and `charge: 'time'`. */
  readonly strategy: Strategy
  /** What is kept of finished jobs. Default 'keep'. */
  readonly history: HistoryMode
  /** What a turn costs. Default 'jobs'. */
  readonly charge: Charge
  /** Jobs of the queue that may run at once, 0 (none start) to 1,000,000; null for any number, the default. */
  readonly concurrency: number | null
  /** Starts of the whole queue; null for any number, the default. */
  readonly rate: RateLimit | null
  /** Jobs that may wait, 0 (enqueue is closed) to 1,000,000,000; null for any number, the default. */
  readonly quota: number | null
  /** `concurrency` of each tenant that has none of its own. */
  readonly tenantConcurrency: number | null
  /** `rate` of each tenant that has none of its own. */
  readonly tenantRate: RateLimit | null
  /** `quota` of each tenant that has none of its own. */
  readonly tenantQuota: number | null
  /** Jobs of each key that may run at once, where the key has no limit of its own: 0 to 1,000,000. Default 1, in order. */
  readonly keyConcurrency: number
  /** `rate` of each key that has none of its own. */
  readonly keyRate: RateLimit | null
  /** For each tenant that has none of its own, and whose group has none. */
  readonly objective: Objective | null
}

export interface TenantSettings {
  /** Relative share of the queue, or of its group, 0.001 to 1,000. Default 1. */
  readonly weight: number
  /** The group whose share the tenant has a part of, 1 to 255 bytes; null for a share of its own, the default. */
  readonly group: string | null
  /** Its jobs that may run at once, 0 (none start) to 1,000,000; null for the queue's `tenantConcurrency`, the default. */
  readonly concurrency: number | null
  /** Its starts; null for the queue's `tenantRate`, the default. */
  readonly rate: RateLimit | null
  /** Its jobs that may wait, 0 to 1,000,000,000; null for the queue's `tenantQuota`, the default. */
  readonly quota: number | null
  /** Null for the group's or the queue's, the default. */
  readonly objective: Objective | null
}

export interface GroupSettings {
  /** Relative share of the queue for all its tenants together, 0.001 to 1,000. Default 1. */
  readonly weight: number
  /** Null for the queue's, the default. */
  readonly objective: Objective | null
}

/** Of one kind in a queue, across all tenants. */
export interface KindSettings {
  /** Its jobs that may run at once, 0 (none start) to 1,000,000; null for any number, the default. */
  readonly concurrency: number | null
  /** Its starts; null for any number, the default. */
  readonly rate: RateLimit | null
}

/** Of one key in a queue, across all tenants and kinds. */
export interface KeySettings {
  /** Its jobs that may run at once, 0 to 1,000,000; null for the queue's `keyConcurrency`, the default. */
  readonly concurrency: number | null
  /** Its starts; null for the queue's `keyRate`, the default. */
  readonly rate: RateLimit | null
}

/** What is to be set: what is not named (or undefined) stays as it is, and null restores the default. */
export type SettingsChange<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] | null | undefined }

/** Settings as they are now. */
export type Configured<Settings> = Settings & {
  /** Since when nothing of it starts; null while it is not paused. */
  readonly pausedAt: Date | null
}
