import { ATTEMPTS_MAX, PRIORITY_MAX, TIMEOUT_MS_MAX } from '../limits.js'
import { checkKnownOptions, expected, integerOption, nameOption } from '../options.js'
import { type RetryOptions, type RetryPolicy, resolveRetry } from '../retry/policy.js'
import { type InferInput, type InferOutput, isStandardSchema, type StandardSchema } from './standard-schema.js'

export interface JobOptions<Schema extends StandardSchema = StandardSchema> {
  /** Names the work, in kebab-case by custom. Stored with every job, so it outlives renamed code. */
  readonly kind: string
  /** Any Standard Schema: checks the payload when a job is enqueued and again before it runs. Default: any JSON. */
  readonly payload?: Schema
  /** What workers subscribe to. Default 'default'. */
  readonly queue?: string
  /** How often a job may be started before it is discarded, 1 to 10,000. Default 20. */
  readonly maxAttempts?: number
  /** -1000 to 1000; higher runs earlier among the jobs of one tenant. Default 0. */
  readonly priority?: number
  /**
   * What jobs must not use at the same time, made from the payload as it is enqueued, such as the id of an account:
   * `key: ({ accountId }) => accountId`. See the option `key` of `enqueue`, which replaces it. Undefined for no key.
   */
  key?(payload: InferInput<Schema>): string | undefined
  /** The wait before another attempt: numbers of the exponential back-off, or a function. */
  readonly retry?: RetryOptions
  /** A handler that runs longer is aborted and the attempt fails. Default: no limit but the lease's. */
  readonly timeoutMs?: number
}

/** What `defineJob` returns: the one value that the enqueuing side and the handling side share. */
export interface JobDefinition<Input = unknown, Output = Input> {
  readonly kind: string
  readonly payload?: StandardSchema<Input, Output>
  readonly queue: string
  readonly maxAttempts: number
  readonly priority: number
  key?(payload: Input): string | undefined
  readonly retry: RetryPolicy
  readonly timeoutMs?: number
}

/**
 * Queue: most applications need one. Attempts: with the default back-off five attempts span 8 seconds on average, ten
 * span 4 minutes and twenty 4 hours; twenty outlast an outage of what the handler calls. Priority: the middle, so that
 * there is room on both sides.
 */
export const JOB_DEFAULTS = Object.freeze({ queue: 'default', maxAttempts: 20, priority: 0 })

const JOB_OPTIONS = [
  'kind',
  'payload',
  'queue',
  'maxAttempts',
  'priority',
  'key',
  'retry',
  'timeoutMs',
] as const satisfies (keyof JobOptions)[]

/** Declares a kind of job. Fails at once on an option that cannot be used. */
export function defineJob<const Schema extends StandardSchema = StandardSchema<unknown, unknown>>(
  options: JobOptions<Schema>,
): JobDefinition<InferInput<Schema>, InferOutput<Schema>> {
  checkKnownOptions('defineJob', options, JOB_OPTIONS)
  const { queue = JOB_DEFAULTS.queue, maxAttempts = JOB_DEFAULTS.maxAttempts } = options
  const { payload, priority = JOB_DEFAULTS.priority, timeoutMs } = options
  if (payload !== undefined && !isStandardSchema(payload)) {
    throw expected('payload', 'a Standard Schema, such as one of zod, valibot or arktype', payload)
  }
  return Object.freeze({
    kind: nameOption('kind', options.kind),
    // The cast repeats what the type parameter says: InferInput and InferOutput are read from this very schema.
    ...(payload !== undefined && { payload: payload as StandardSchema<InferInput<Schema>, InferOutput<Schema>> }),
    queue: nameOption('queue', queue),
    maxAttempts: attemptsOption(maxAttempts),
    priority: priorityOption(priority),
    ...keyOption(options),
    retry: resolveRetry(options.retry),
    ...(timeoutMs !== undefined && {
      timeoutMs: integerOption('timeoutMs', timeoutMs, { min: 1, max: TIMEOUT_MS_MAX }),
    }),
  })
}

function keyOption<Input>({ key }: Pick<JobDefinition<Input>, 'key'>): Pick<JobDefinition<Input>, 'key'> {
  if (key === undefined) return {}
  if (typeof key === 'function') return { key }
  throw expected('key', 'a function that makes a key from a payload', key, 'a fixed key is an option of enqueue')
}

export function attemptsOption(value: unknown): number {
  return integerOption('maxAttempts', value, { min: 1, max: ATTEMPTS_MAX })
}

export function priorityOption(value: unknown): number {
  return integerOption('priority', value, { min: -PRIORITY_MAX, max: PRIORITY_MAX })
}
