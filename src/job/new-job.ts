import { ConfigurationError, PayloadError } from '../errors.js'
import { DELAY_MS_MAX, PAYLOAD_BYTES_DEFAULT } from '../limits.js'
import { checkKnownOptions, expected, integerOption, nameOption } from '../options.js'
import { attemptsOption, type JobDefinition, priorityOption } from './define-job.js'
import type { NewJob } from './job.js'
import { encodePayload } from './payload.js'
import { validate } from './standard-schema.js'

export interface EnqueueOptions {
  /** On whose behalf the job runs: capacity is shared between tenants. */
  readonly tenant: string
  /** Default: the definition's. */
  readonly queue?: string
  /**
   * 1 to 255 bytes. Of the jobs of a queue with the same key, of whatever tenant and kind, only so many run at once as its
   * limit allows: by default one, strictly in their order, retries included. Default: the definition's; null for none.
   */
  readonly key?: string | null
  /** -1000 to 1000; higher runs earlier among the jobs of one tenant. Default: the definition's. */
  readonly priority?: number
  /** Not before this time. Default: at once. A time in the past means at once. */
  readonly runAt?: Date
  /** Not before this many milliseconds from now, by the database's clock. Default 0. */
  readonly delayMs?: number
  /** Default: the definition's. */
  readonly maxAttempts?: number
}

/** What applies to every job of one client. */
export interface EnqueueDefaults {
  /** Largest payload as JSON in UTF-8. */
  readonly payloadBytesMax: number
}

const ENQUEUE_OPTIONS = [
  'tenant',
  'queue',
  'key',
  'priority',
  'runAt',
  'delayMs',
  'maxAttempts',
  'transaction', // read by the client; known here so that its misspellings are recognized too
] as const satisfies (keyof EnqueueOptions | 'transaction')[]

/**
 * Turns a call of `enqueue` into the row to insert, or rejects before any SQL is sent. What is stored is the input as
 * given: the schema's output may be what JSON cannot carry, such as a Date, and is made anew when the job runs. The text
 * is written before the schema is asked, so that neither an asynchronous schema nor a change by the caller in the
 * meantime can alter what is stored.
 */
export async function newJob<Input>(
  definition: JobDefinition<Input, unknown>,
  payload: NoInfer<Input>,
  options: EnqueueOptions,
  defaults: EnqueueDefaults = { payloadBytesMax: PAYLOAD_BYTES_DEFAULT },
): Promise<NewJob> {
  checkDefinition(definition)
  checkHasNoTransaction(options)
  const job = { kind: definition.kind, ...resolveOptions(definition, options) }
  const text = encodePayload(payload, defaults.payloadBytesMax)
  const key = keyOf(definition, payload, options)
  await checkBySchema(definition, payload)
  return { ...job, ...key(), payload: text }
}

/** Made at once, for the same reason; but a payload that the schema refuses may be why it fails, and then that is the error. */
function keyOf<Input>(definition: JobDefinition<Input, unknown>, payload: Input, options: EnqueueOptions) {
  try {
    const key = options.key === undefined ? definition.key?.(payload) : options.key
    const made = key == null ? {} : { key: nameOption('key', key) }
    return () => made
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** `enqueue` has taken it out. What is left here stood with one job of `enqueueMany`, and would be in no transaction. */
function checkHasNoTransaction(options: unknown): void {
  if (typeof options !== 'object' || options === null || !('transaction' in options)) return
  throw new ConfigurationError(
    'transaction is an option of enqueueMany as a whole, not of a job; give it once, after the jobs',
  )
}

function checkDefinition(definition: unknown): void {
  const isDefinition = typeof definition === 'object' && definition !== null && 'kind' in definition
  if (!isDefinition) throw expected('the first argument of enqueue', 'what defineJob returned', definition)
}

function resolveOptions(definition: JobDefinition, options: EnqueueOptions) {
  checkKnownOptions('enqueue', options, ENQUEUE_OPTIONS)
  const { queue = definition.queue, priority = definition.priority, maxAttempts = definition.maxAttempts } = options
  return {
    tenant: nameOption('tenant', options.tenant),
    queue: nameOption('queue', queue),
    priority: priorityOption(priority),
    maxAttempts: attemptsOption(maxAttempts),
    ...resolveStart(options),
  }
}

function resolveStart({ runAt, delayMs }: EnqueueOptions): Pick<NewJob, 'runAt' | 'delayMs'> {
  if (runAt !== undefined && delayMs !== undefined) {
    throw new ConfigurationError('runAt and delayMs are both given; give the time or the delay, not both')
  }
  if (runAt !== undefined) return { runAt: dateOption('runAt', runAt) }
  if (delayMs !== undefined) return { delayMs: integerOption('delayMs', delayMs, { min: 0, max: DELAY_MS_MAX }) }
  return {}
}

/** A copy, since the caller may change a Date. Years outside 1 to 9999 have no text form that PostgreSQL reads. */
function dateOption(name: string, value: unknown): Date {
  const remedy = 'pass new Date(…), or delayMs for a time from now'
  if (Object.prototype.toString.call(value) !== '[object Date]') throw expected(name, 'a valid Date', value, remedy)
  const time = Date.prototype.getTime.call(value)
  if (Number.isNaN(time)) throw expected(name, 'a valid Date', value, remedy)
  const date = new Date(time)
  const year = date.getUTCFullYear()
  if (year < 1 || year > 9_999) throw expected(name, 'a Date in the years 1 to 9999', value)
  return date
}

async function checkBySchema(definition: JobDefinition, payload: unknown): Promise<void> {
  if (definition.payload === undefined) return
  const result = await validate(definition.payload, payload)
  if ('value' in result) return
  throw new PayloadError(
    'PAYLOAD_INVALID',
    result.path,
    `payload refused by the schema of kind ${JSON.stringify(definition.kind)}: ${result.issues.join('; ')}`,
  )
}
