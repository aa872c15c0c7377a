export type { TenantryOptions } from './config.js'
export type { Remedy, Rule, Why, WhyTarget } from './diagnosis/why.js'
export type { TransactionClient } from './driver/transaction-client.js'
export {
  ConfigurationError,
  type ErrorCode,
  HandlerTimeoutError,
  LeaseLostError,
  PayloadError,
  QuotaExceededError,
  type QuotaUse,
  ShutdownError,
  TenantryError,
} from './errors.js'
export { defineJob, type JobDefinition, type JobOptions } from './job/define-job.js'
export type { JobFilter, Scope } from './job/filter.js'
export type { AttemptError, Job, JobRecord, JobState } from './job/job.js'
export type { EnqueueOptions } from './job/new-job.js'
export type { StandardSchema } from './job/standard-schema.js'
export { jsonLogger, type Logger, silentLogger } from './logger.js'
export type {
  Load,
  NumbersOptions,
  ObjectiveReached,
  Percentiles,
  QueueNumbers,
  Received,
  TenantNumbers,
  TenantOrder,
} from './numbers/numbers.js'
export type { QueuesOptions, TenantsOptions } from './numbers/options.js'
export type { CancelAllOptions, DrainOptions, Occupancy, PurgeOptions } from './operations/options.js'
export type { BackoffOptions, RetryFunction, RetryOptions, RetryPolicy } from './retry/policy.js'
export type {
  Charge,
  Configured,
  GroupSettings,
  HistoryMode,
  KeySettings,
  KindSettings,
  Objective,
  QueueSettings,
  RateLimit,
  SettingsChange,
  Strategy,
  TenantSettings,
} from './settings/settings.js'
export type { SettleEvent } from './settle/completer.js'
export type { PlannedExit } from './settle/planned-exit.js'
export type { Queryable } from './store/store.js'
export { type InTransaction, type JobToEnqueue, Tenantry } from './tenantry.js'
export type { ClaimEvent } from './worker/claim-loop.js'
export type { BatchContext, JobContext } from './worker/context.js'
export type {
  BatchHandler,
  BatchJobResult,
  BatchOptions,
  BatchResult,
  HandlerResult,
  JobHandler,
} from './worker/handlers.js'
export type { LeaseLostEvent, WorkerObserver, WorkerOptions } from './worker/options.js'
export type { SignalHost } from './worker/signals.js'
export type { Worker, WorkerStatus } from './worker/worker.js'
