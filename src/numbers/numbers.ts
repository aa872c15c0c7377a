import type { Charge, Strategy } from '../settings/settings.js'

/** Percentiles of times, each at most 9.1 % off. */
export interface Percentiles {
  /** Milliseconds, 1 (which stands for everything up to it) to 86,400,000 (one day); so are the others. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** What waits and runs now. */
export interface Load {
  /** Jobs that may be claimed. */
  readonly available: number
  /** Jobs that are due and wait for their key. */
  readonly blocked: number
  /** Jobs that are not due yet. */
  readonly scheduled: number
  /** More wait than were counted. */
  readonly capped: boolean
  readonly running: number
  /** Milliseconds since the job was due that is next; undefined when none is available. */
  readonly oldestMs: number | undefined
}

/** What happened in the last full minutes and the current one. */
export interface Received {
  readonly started: number
  readonly completed: number
  /** Attempts that failed, whether they are tried again or not. */
  readonly failed: number
  /** Time of the slots of the workers, in milliseconds. */
  readonly busyMs: number
  /** From being due to being claimed; undefined when nothing started. */
  readonly waitMs: Percentiles | undefined
  /** How long handlers ran; undefined when none ended. */
  readonly runMs: Percentiles | undefined
}

/** "The share `share` of the jobs starts within `waitMs`", and whether it was so. */
export interface ObjectiveReached {
  readonly waitMs: number
  /** 0.5 to 0.9999. */
  readonly share: number
  /** The share that started within the time, 0 to 1; undefined when nothing started and nothing waits too long. */
  readonly reached: number | undefined
  /** Undefined with `reached`. */
  readonly met: boolean | undefined
}

/** A tenant in one queue. See docs/numbers.md for what each number means and how exact it is. */
export interface TenantNumbers extends Load, Received {
  readonly tenant: string
  readonly group: string | undefined
  readonly weight: number
  readonly paused: boolean
  /** Has jobs that are due and nothing that a claim may take: it is paused, or at its limit or rate or that of each tenant. */
  readonly parked: boolean
  /** Its own or the queue's `tenantConcurrency`; undefined when there is no limit. */
  readonly concurrency: number | undefined
  /** Of its own or the queue's `tenantRate`; undefined when there is no limit. */
  readonly ratePerSecond: number | undefined
  /** Its virtual time in the ring; undefined when it is not in it. */
  readonly pass: number | undefined
  /**
   * How much service it is ahead of the tenant that is next, in jobs, or in seconds where time is charged: 0 or more, but for
   * one that has nothing ready. Undefined with `pass`, and when nobody is next.
   */
  readonly passLag: number | undefined
  /** Others were served before it although it was their turn after it. */
  readonly starved: boolean
  /** It holds more than a tenth of what runs, and at least 30 jobs, or used more than a tenth of the time of the slots. */
  readonly noisy: boolean
  /** The part of the queue's service that it got, 0 to 1; undefined when there was none. */
  readonly receivedShare: number | undefined
  /** The part that it is to have by its weight among those that were served or wait, 0 to 1. */
  readonly entitledShare: number
  readonly objective: ObjectiveReached | undefined
}

/** A queue with all its tenants. */
export interface QueueNumbers extends Load, Received {
  readonly queue: string
  readonly strategy: Strategy
  readonly charge: Charge
  readonly paused: boolean
  /** Workers that were seen within the last minute, and their slots. */
  readonly workers: number
  readonly slots: number
  /** Tenants that have jobs or settings or were served, and those of them that have jobs which are due. */
  readonly tenants: number
  readonly waitingTenants: number
  readonly starved: number
  readonly noisy: number
  readonly objectivesMet: number
  readonly objectivesMissed: number
  /** Jain's index of the last full minute: 1 is fair. Undefined with fewer than two tenants that were backlogged throughout. */
  readonly jain: number | undefined
}

/** How numbers are to be taken. */
export interface NumbersOptions {
  /** The full minutes before the current one that count, a whole number from 0 to 60. Default 5. */
  readonly minutes?: number
  /** How many waiting jobs are counted at most in a queue, 1 to 100,000,000: what the answer costs. Default 500,000. */
  readonly countMax?: number
}

/** How tenants can be ordered; every order but that by name begins with the largest. */
export const TENANT_ORDERS = ['backlog', 'running', 'busy', 'wait', 'oldest', 'share', 'name'] as const
export type TenantOrder = (typeof TENANT_ORDERS)[number]

const RANKS: Readonly<Record<TenantOrder, (of: TenantNumbers) => number>> = {
  backlog: ({ available, blocked }) => available + blocked,
  running: ({ running }) => running,
  busy: ({ busyMs }) => busyMs,
  wait: ({ waitMs }) => waitMs?.p95 ?? -1,
  oldest: ({ oldestMs }) => oldestMs ?? -1,
  share: ({ receivedShare }) => receivedShare ?? -1,
  name: () => 0,
}

/** Those in trouble first whatever the order, then by the order, then by name. */
export function inOrder(tenants: readonly TenantNumbers[], order: TenantOrder): TenantNumbers[] {
  const rank = RANKS[order]
  const starved = (of: TenantNumbers) => (order !== 'name' && of.starved ? 1 : 0)
  return [...tenants].sort(
    (a, b) => starved(b) - starved(a) || rank(b) - rank(a) || Number(a.tenant > b.tenant) - Number(a.tenant < b.tenant),
  )
}
