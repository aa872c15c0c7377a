/** The closed set of reasons for which Tenantry itself fails. A job's own failure is data, not one of these. */
export type ErrorCode =
  | 'CONFIGURATION'
  | 'DATABASE_UNREACHABLE'
  | 'HANDLER_TIMEOUT'
  | 'LEASE_LOST'
  | 'MIGRATION_REQUIRED'
  | 'PAYLOAD_INVALID'
  | 'PAYLOAD_TOO_LARGE'
  | 'QUERY_FAILED'
  | 'QUOTA_EXCEEDED'
  | 'SHUTDOWN'

/** Every operational error of Tenantry: a stable `code` to test for, a message that says what to do, and its cause. */
export class TenantryError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'TenantryError'
    this.code = code
  }
}

/** An option, an environment variable or an argument that cannot be used. The message names the value and the remedy. */
export class ConfigurationError extends TenantryError {
  constructor(message: string, options?: ErrorOptions) {
    super('CONFIGURATION', message, options)
    this.name = 'ConfigurationError'
  }
}

/** The payload was refused before any SQL was sent. `path` leads to the offending member, as in `$.lines[3].price`. */
export class PayloadError extends TenantryError {
  readonly path: string

  constructor(code: 'PAYLOAD_INVALID' | 'PAYLOAD_TOO_LARGE', path: string, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.name = 'PayloadError'
    this.path = path
  }
}

export interface QuotaUse {
  /** Whose quota it is. */
  readonly scope: 'queue' | 'tenant'
  readonly queue: string
  /** Where it is the quota of a tenant: which. */
  readonly tenant?: string
  /** Jobs that may wait. */
  readonly quota: number
  /** Jobs that wait, counted no further than one above the quota. */
  readonly queued: number
  /** When there may be room: an estimate from what runs, 1 second to 5 minutes. */
  readonly retryAfterMs: number
}

/** Too many jobs wait already: none of this enqueue was stored. A transaction of the caller's that it was in has failed. */
export class QuotaExceededError extends TenantryError implements QuotaUse {
  readonly scope: 'queue' | 'tenant'
  readonly queue: string
  readonly tenant?: string
  readonly quota: number
  readonly queued: number
  readonly retryAfterMs: number

  constructor(refusal: string, use: QuotaUse, options?: ErrorOptions) {
    super('QUOTA_EXCEEDED', `${refusal}; enqueue again in ${use.retryAfterMs} ms, or raise the quota`, options)
    this.name = 'QuotaExceededError'
    this.scope = use.scope
    this.queue = use.queue
    if (use.tenant !== undefined) this.tenant = use.tenant
    this.quota = use.quota
    this.queued = use.queued
    this.retryAfterMs = use.retryAfterMs
  }
}

/** The job is no longer ours: its lease ran out and was reclaimed. Whatever this attempt did must not be settled. */
export class LeaseLostError extends TenantryError {
  readonly jobId: string

  constructor(jobId: string, detail = 'raise leaseMs, or make the handler yield to the event loop more often') {
    super('LEASE_LOST', `the lease of job ${jobId} was lost while it was running; ${detail}`)
    this.name = 'LeaseLostError'
    this.jobId = jobId
  }
}

/** The handler ran longer than its definition allows. The attempt has failed. */
export class HandlerTimeoutError extends TenantryError {
  constructor(timeoutMs: number) {
    const what = `the handler ran longer than the timeoutMs of its definition (${timeoutMs})`
    super('HANDLER_TIMEOUT', `${what}; raise it, or let the handler end when its signal aborts`)
    this.name = 'HandlerTimeoutError'
  }
}

/** The worker is stopping and the time for draining is over. The job goes back to its queue. */
export class ShutdownError extends TenantryError {
  constructor() {
    super('SHUTDOWN', 'the worker is shutting down; the job is released and another worker will run it')
    this.name = 'ShutdownError'
  }
}
