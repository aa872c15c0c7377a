import type { Strategy } from '../settings/settings.js'

/** What is asked about: one job, or the next job of a tenant, of any kind or of one. */
export type WhyTarget =
  | { readonly job: string }
  | { readonly queue: string; readonly tenant: string; readonly kind?: string }

/** The job that an answer is about. */
export interface JobFacts {
  readonly job: string
  readonly queue: string
  readonly kind: string
  readonly tenant: string
  readonly key: string | null
  readonly priority: number
  readonly attempt: number
  readonly maxAttempts: number
  /** Since when it has been due; null while it runs. */
  readonly waitingMs: number | null
}

/** A failure of an earlier attempt, in short. */
export interface ErrorFacts {
  readonly name: string
  readonly message: string
  readonly attempt: number
}

/** A job that runs, and so has a slot that others want. */
export interface RunningFacts {
  readonly job: string
  readonly kind: string
  readonly tenant: string
  readonly runningMs: number
}

/** Who holds a lock: a session, or a prepared transaction, which has none. What the server does not show is null or absent. */
export interface HolderFacts {
  readonly pid?: number
  readonly prepared?: string
  readonly application?: string
  readonly user?: string | null
  readonly state?: string | null
  readonly query?: string | null
  readonly queryStartedAt?: Date | null
  readonly queryMs?: number | null
  readonly transactionMs?: number | null
}

interface PauseFacts {
  readonly since: Date
  readonly sinceMs: number
}

interface LimitFacts {
  readonly limit: number
  /** Counted to one more than the limit. */
  readonly running: number
  /** Those that have been running longest, up to three. */
  readonly oldest: readonly RunningFacts[]
}

interface RateFacts {
  readonly perSecond: number
  readonly burst: number
  /** Whole tokens in the bucket. */
  readonly tokens: number
  /** Jobs that take a token first. */
  readonly before: number
  /** Until there is a token for this job. */
  readonly tokenMs: number
}

interface OwnSetting {
  /** Whether the limit is set for this tenant or key, or for all of the queue that have none. */
  readonly own: boolean
}

interface KeyFacts extends OwnSetting {
  readonly key: string
  readonly limit: number
  /** Jobs that have the key, counted to the limit. */
  readonly held: number
  /** Five of them. Those that are available have been admitted, and wait for their turn. */
  readonly holders: readonly {
    readonly job: string
    readonly state: 'running' | 'available'
    readonly kind: string
    readonly tenant: string
  }[]
  /** Jobs that come before this one in the order of the key, counted to 1,000. */
  readonly before: number
  /** The first of them. */
  readonly first: string | null
}

interface TurnFacts {
  readonly strategy: Strategy
  /** Workers that know the kind, and their slots. */
  readonly workers: number
  readonly slots: number
  readonly busy: number
  /** Jobs of the same tenant that come first. */
  readonly ownBefore: number
  /** Other tenants with turns before it: in its group, when it has one. */
  readonly tenantsBefore: number
  readonly group?: string
  /** Where the tenant has a group: the groups, and tenants without one, with turns before it. */
  readonly othersBefore?: number
  /** Jobs that start first, at most, as if nobody's backlog ended before. */
  readonly jobsBefore: number
  /** False when counting stopped at 1,000: then the numbers are the least that there can be. */
  readonly countedToTheEnd: boolean
}

/** One member of the union for each of these rules. */
type Each<Name extends string, Facts> = Name extends string ? { readonly rule: Name } & Facts : never

/** The one rule that binds, with its facts. The order of the rules is that of precedence: docs/why.md. */
export type Reason =
  | { readonly rule: 'unknown'; readonly job: string }
  | ({
      readonly rule: 'finished'
      readonly state: 'completed' | 'cancelled' | 'discarded'
      readonly finalizedAt: Date
      readonly error: ErrorFacts | null
    } & Omit<JobFacts, 'priority' | 'waitingMs'>)
  | ({
      readonly rule: 'running'
      readonly claimedAt: Date
      readonly runningMs: number
      /** Null when its lease has no row. */
      readonly worker: string | null
      readonly leaseUntil: Date | null
      readonly lease: 'held' | 'expired' | 'missing'
    } & JobFacts)
  | ({
      readonly rule: 'scheduled'
      readonly runAt: Date
      readonly dueMs: number
      /** It waits for its next attempt, or snoozes. */
      readonly ranBefore: boolean
      readonly error: ErrorFacts | null
    } & JobFacts)
  | {
      readonly rule: 'no_jobs'
      readonly queue: string
      readonly tenant: string
      readonly kind: string | null
      readonly running: number
      readonly oldest: readonly RunningFacts[]
    }
  | ({
      readonly rule: 'table_locked'
      readonly table: string
      readonly mode: string
      readonly holders: readonly HolderFacts[]
    } & Partial<JobFacts>)
  | Each<'queue_paused' | 'kind_paused' | 'tenant_paused', JobFacts & PauseFacts>
  | ({
      readonly rule: 'no_worker'
      /** Workers of the queue, whatever their kinds. */
      readonly workers: number
      readonly knownKinds: readonly string[]
      /** When a worker that knows the kind was last seen, if that is not long ago. */
      readonly lastSeenAt: Date | null
    } & JobFacts)
  | Each<'queue_locked' | 'row_locked', JobFacts & { readonly holders: readonly HolderFacts[] }>
  | ({ readonly rule: 'key_limit' } & JobFacts & KeyFacts)
  | ({
      readonly rule: 'key_retry'
      readonly retrying: string
      readonly runAt: Date
      readonly dueMs: number
      readonly error: ErrorFacts | null
    } & JobFacts &
      KeyFacts)
  | ({ readonly rule: 'key_rate'; readonly key: string } & JobFacts & RateFacts & OwnSetting)
  | Each<'queue_limit' | 'kind_limit', JobFacts & LimitFacts>
  | ({ readonly rule: 'tenant_limit' } & JobFacts & LimitFacts & OwnSetting)
  | Each<'queue_rate' | 'kind_rate', JobFacts & RateFacts>
  | ({ readonly rule: 'tenant_rate' } & JobFacts & RateFacts & OwnSetting)
  | Each<'slots_busy' | 'turns' | 'next', JobFacts & TurnFacts>

/** What `rule` of an answer may be; docs/why.md says what each means. */
export type Rule = Reason['rule']

/** What would change it. */
export interface Remedy {
  readonly sentence: string
  /** For a shell. */
  readonly command?: string
  /** For a program that has a client called `tenantry`. */
  readonly call?: string
}

/** Why a job does not run: the rule and its facts, and both in words. */
export type Why = Reason & { readonly explanation: string; readonly remedies: readonly Remedy[] }
