/** Percentiles of times in milliseconds, each at most 9 % off. */
export interface Percentiles {
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
  /** How long ago the job was due that is next; undefined when none is ready. */
  readonly oldestMs: number | undefined
}

/** What happened in the last full minutes and the current one. */
export interface Received {
  readonly started: number
  readonly completed: number
  /** Attempts that failed, whether they are tried again or not. */
  readonly failed: number
  /** Time of the slots of the workers. */
  readonly busyMs: number
  /** From being due to being claimed; undefined when nothing started. */
  readonly waitMs: Percentiles | undefined
  /** How long handlers ran; undefined when none ended. */
  readonly runMs: Percentiles | undefined
}

/** "The share `share` of the jobs starts within `waitMs`", and whether it was so. */
export interface ObjectiveReached {
  readonly waitMs: number
  readonly share: number
  /** The share that started within the time; undefined when nothing started or waits too long. */
  readonly reached: number | undefined
  readonly met: boolean | undefined
}

/** A tenant in one queue. See docs/numbers.md for what each number means and how exact it is. */
export interface TenantNumbers extends Load, Received {
  readonly tenant: string
  readonly group: string | undefined
  readonly weight: number
  readonly paused: boolean
  /** At a limit of its own. */
  readonly parked: boolean
  readonly concurrency: number | undefined
  readonly ratePerSecond: number | undefined
  /** Its virtual time in the ring; undefined when it is not in it. */
  readonly pass: number | undefined
  /** How much service it is ahead of the tenant that is next, in jobs, or in seconds where time is charged. */
  readonly passLag: number | undefined
  /** Others were served before it although it was their turn after it. */
  readonly starved: boolean
  /** It holds more than a tenth of what runs, and at least 30 jobs, or used more than a tenth of the time of the slots. */
  readonly noisy: boolean
  /** The part of the queue's service that it got; undefined when there was none. */
  readonly receivedShare: number | undefined
  /** The part that it is to have by its weight among those that were served or wait. */
  readonly entitledShare: number
  readonly objective: ObjectiveReached | undefined
}

/** A queue with all its tenants. */
export interface QueueNumbers extends Load, Received {
  readonly queue: string
  readonly strategy: string
  readonly charge: string
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
  /** The full minutes before the current one that count, 0 to 60. Default 5. */
  readonly minutes?: number
  /** How many waiting jobs are counted at most in a queue: what the answer costs. Default 500,000. */
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
