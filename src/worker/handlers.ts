import { ConfigurationError } from '../errors.js'
import type { JobDefinition } from '../job/define-job.js'
import type { Job } from '../job/job.js'
import { CONCURRENCY_MAX, KINDS_MAX } from '../limits.js'
import { checkKnownOptions, describeValue, expected, integerOption } from '../options.js'
import type { AttemptResult } from '../settle/decide.js'
import type { PlannedExit } from '../settle/planned-exit.js'
import type { BatchContext, JobContext } from './context.js'

// biome-ignore lint/suspicious/noConfusingVoidType: an async handler without a return statement has this type
export type HandlerResult = PlannedExit | undefined | void

/** Runs one job. To return nothing completes it, to throw fails the attempt. */
export type JobHandler<Payload> = (job: Job<Payload>, context: JobContext) => HandlerResult | Promise<HandlerResult>

/** What becomes of one job of a batch: completed, a planned exit, or failed with this error. */
export type BatchJobResult = PlannedExit | Error | undefined

/**
 * What becomes of a batch: nothing returned completes every job; an array gives the result of each job in order; a map
 * gives results by job id, and jobs that are not in it are completed.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: an async handler without a return statement has this type
export type BatchResult = ReadonlyMap<string, BatchJobResult> | readonly BatchJobResult[] | undefined | void

/** Runs several jobs of one kind. To throw fails the attempt of every one of them. */
export type BatchHandler<Payload> = (
  jobs: readonly Job<Payload>[],
  context: BatchContext,
) => BatchResult | Promise<BatchResult>

export interface BatchOptions {
  /** Jobs in one call, at most. Each takes a slot, so the worker's concurrency must be at least this. */
  readonly size: number
  /** How long the first jobs may wait until the batch is full. Default 0: a call gets what one claim brought. */
  readonly waitMs?: number
}

export interface SingleRegistration {
  readonly type: 'single'
  readonly definition: JobDefinition
  readonly handler: JobHandler<unknown>
}

export interface BatchRegistration {
  readonly type: 'batch'
  readonly definition: JobDefinition
  readonly handler: BatchHandler<unknown>
  readonly size: number
  readonly waitMs: number
}

/** A kind and how to run it. The payload's type is known where the handler is registered, and only there. */
export type Registration = SingleRegistration | BatchRegistration

const BATCH_WAIT_MAX_MS = 60_000

/** Which kinds this worker can run. */
export class Handlers {
  readonly #registrations = new Map<string, Registration>()

  get(kind: string): Registration | undefined {
    return this.#registrations.get(kind)
  }

  add<Input, Output>(definition: JobDefinition<Input, Output>, handler: JobHandler<Output>): void {
    // The cast is sound: a payload reaches the handler only through the schema of this very definition.
    this.#add({ type: 'single', definition: erased(definition), handler: checked(handler) as JobHandler<unknown> })
  }

  addBatch<Input, Output>(
    definition: JobDefinition<Input, Output>,
    options: BatchOptions,
    handler: BatchHandler<Output>,
  ): void {
    checkKnownOptions('handleBatch', options, ['size', 'waitMs'])
    this.#add({
      type: 'batch',
      definition: erased(definition),
      handler: checked(handler) as BatchHandler<unknown>,
      size: integerOption('size', options.size, { min: 1, max: CONCURRENCY_MAX }),
      waitMs: integerOption('waitMs', options.waitMs ?? 0, { min: 0, max: BATCH_WAIT_MAX_MS }),
    })
  }

  /** The kinds to claim: all that have a handler, or those of them that were chosen. */
  claimable(chosen: ReadonlySet<string> | undefined, concurrency: number): readonly string[] {
    const kinds = [...this.#registrations.keys()].filter((kind) => chosen?.has(kind) ?? true)
    const missing = [...(chosen ?? [])].find((kind) => !this.#registrations.has(kind))
    if (missing !== undefined) {
      throw new ConfigurationError(`kinds names ${describeValue(missing)}, which has no handler; call handle() for it`)
    }
    if (kinds.length === 0) {
      throw new ConfigurationError('the worker has no handler; call handle() for each kind before start()')
    }
    if (kinds.length > KINDS_MAX) {
      throw new ConfigurationError(`expected at most ${KINDS_MAX} kinds with a handler, got ${kinds.length}`)
    }
    for (const kind of kinds) this.#checkSize(kind, concurrency)
    return kinds
  }

  #add(registration: Registration): void {
    const { kind } = registration.definition
    if (this.#registrations.has(kind)) {
      throw new ConfigurationError(`the kind ${describeValue(kind)} has a handler already; a kind has exactly one`)
    }
    this.#registrations.set(kind, registration)
  }

  #checkSize(kind: string, concurrency: number): void {
    const registration = this.#registrations.get(kind)
    if (registration?.type !== 'batch' || registration.size <= concurrency) return
    const what = `at most the worker's concurrency (${concurrency})`
    throw expected(`size of ${describeValue(kind)}`, what, registration.size, 'every job of a batch takes a slot')
  }
}

/** What a batch handler returned, job by job. */
export function batchResults(jobs: readonly Job[], value: unknown): readonly AttemptResult[] {
  if (value === undefined) return jobs.map(() => ({ type: 'returned', value: undefined }))
  if (Array.isArray(value) && value.length === jobs.length) return value.map(jobResult)
  const ids = new Set<unknown>(jobs.map((job) => job.id))
  if (value instanceof Map && [...value.keys()].every((id) => ids.has(id))) {
    return jobs.map((job) => jobResult(value.get(job.id)))
  }
  const what = `nothing, an array of ${jobs.length} results, or a map of results by job id`
  const error = new TypeError(`expected the batch handler to return ${what}, got ${describeValue(value)}`)
  return jobs.map(() => ({ type: 'threw', error }))
}

function jobResult(value: unknown): AttemptResult {
  return value instanceof Error ? { type: 'threw', error: value } : { type: 'returned', value }
}

function erased<Input, Output>(definition: JobDefinition<Input, Output>): JobDefinition {
  if (typeof definition === 'object' && definition !== null && typeof definition.kind === 'string') return definition
  throw expected('the first argument', 'a definition made by defineJob', definition)
}

function checked(handler: unknown): unknown {
  if (typeof handler === 'function') return handler
  throw expected('the handler', 'a function', handler)
}
