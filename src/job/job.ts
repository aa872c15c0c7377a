/**
 * Where a job is. `scheduled` jobs become `available` when due or, if they have a key, `blocked` until the key has room. The
 * last three are final and live in the history.
 */
export const JOB_STATES = [
  'scheduled',
  'blocked',
  'available',
  'running',
  'completed',
  'cancelled',
  'discarded',
] as const
export type JobState = (typeof JOB_STATES)[number]

/** One failed attempt as it is stored with the job. */
export interface AttemptError {
  readonly attempt: number
  /** Database time, ISO 8601. */
  readonly at: string
  readonly name: string
  readonly message: string
  readonly stack?: string
}

/** A job as its handler sees it. */
export interface Job<Payload = unknown> {
  /** 64-bit number as a decimal string: exact, whatever its size. */
  readonly id: string
  readonly queue: string
  readonly kind: string
  readonly tenant: string
  /** What it must not use together with more jobs than the limit of the key allows. */
  readonly key?: string
  readonly payload: Payload
  /** 1 for the first run. Counted when the job is claimed, so that a job which kills its process is bounded too. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly priority: number
  readonly runAt: Date
  readonly createdAt: Date
  readonly errors: readonly AttemptError[]
  /** How long it waited from `runAt` until it was claimed, by the database's clock. Only of a job that was just claimed. */
  readonly waitMs?: number
}

/** A job as operators see it: waiting, running or finished. */
export interface JobRecord extends Job {
  readonly state: JobState
  readonly finalizedAt?: Date
}

/** A job row that is ready to be inserted: validated, its payload already JSON text. */
export interface NewJob {
  readonly queue: string
  readonly kind: string
  readonly tenant: string
  /** What it must not use together with more jobs than the key's limit allows. */
  readonly key?: string
  /** JSON text. */
  readonly payload: string
  /** -1000 to 1000; higher runs earlier. */
  readonly priority: number
  /** Either an absolute time or a delay from the database's now; at most one of them is set. */
  readonly runAt?: Date
  readonly delayMs?: number
  readonly maxAttempts: number
}
