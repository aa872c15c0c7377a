import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { ConfigurationError } from '../errors.js'
import { TIMEOUT_MS_MAX } from '../limits.js'
import { BACKOFF_DEFAULTS } from '../retry/policy.js'
import { defineJob, JOB_DEFAULTS, type JobDefinition, type JobOptions } from './define-job.js'
import type { NewJob } from './job.js'
import type { EnqueueOptions, newJob } from './new-job.js'
import type { StandardSchema } from './standard-schema.js'

const schemaOf = (validate: StandardSchema['~standard']['validate']): StandardSchema => ({
  '~standard': { version: 1, vendor: 'handmade', validate },
})

describe('a definition', () => {
  test('has every default filled in and is frozen', () => {
    const definition = defineJob({ kind: 'send-invoice' })
    expect(definition).toEqual({
      kind: 'send-invoice',
      ...JOB_DEFAULTS,
      retry: { backoff: BACKOFF_DEFAULTS },
    })
    expect(Object.isFrozen(definition)).toBe(true)
  })

  test('carries every option that was given (B13)', () => {
    const payload = z.object({ invoiceId: z.string() })
    const later = () => 5
    const key = ({ invoiceId }: { invoiceId: string }) => invoiceId
    const numbers = { maxAttempts: 1, priority: -1_000, timeoutMs: 1 }
    const options = { kind: 'a', payload, queue: 'q', ...numbers, key, retry: later }
    expect(defineJob(options)).toEqual({ ...options, retry: { backoff: BACKOFF_DEFAULTS, custom: later } })
    expect(defineJob({ kind: 'a', timeoutMs: TIMEOUT_MS_MAX }).timeoutMs).toBe(TIMEOUT_MS_MAX)
  })

  test('accepts a schema that is a function, as those of arktype are', () => {
    const schema = Object.assign(
      () => {},
      schemaOf((value) => ({ value })),
    )
    expect(defineJob({ kind: 'a', payload: schema }).payload).toBe(schema)
  })

  test.each<[object, string]>([
    [{}, 'expected kind to be a string of 1 to 255 bytes in UTF-8, got undefined'],
    [{ kind: '' }, 'got ""'],
    [{ kind: 'a', maxAttemps: 3 }, 'unknown option "maxAttemps" of defineJob; did you mean maxAttempts?'],
    [{ kind: 'a', maxAttempts: 0 }, 'expected maxAttempts to be an integer from 1 to 10000, got 0'],
    [{ kind: 'a', maxAttempts: null }, 'expected maxAttempts to be an integer from 1 to 10000, got null'],
    [{ kind: 'a', priority: 1_001 }, 'expected priority to be an integer from -1000 to 1000, got 1001'],
    [{ kind: 'a', queue: 'a\0b' }, 'expected queue to be a string without NUL characters'],
    [{ kind: 'a', timeoutMs: 2 ** 31 }, 'expected timeoutMs to be an integer from 1 to 2147483647, got 2147483648'],
    [{ kind: 'a', retry: { factr: 2 } }, 'unknown option "factr" of retry; did you mean factor?'],
    [{ kind: 'a', payload: { invoiceId: 'string' } }, 'expected payload to be a Standard Schema'],
    [{ kind: 'a', payload: null }, 'expected payload to be a Standard Schema'],
    [{ kind: 'a', payload: { '~standard': { version: 2, validate: () => {} } } }, 'expected payload to be a Standard'],
  ])('made of %j is refused (B13)', (options, words) => {
    expect(() => defineJob(options as JobOptions)).toThrow(ConfigurationError)
    expect(() => defineJob(options as JobOptions)).toThrow(words)
  })
})

describe('the types of a definition', () => {
  test('come from the schema: its input is enqueued, its output is handled', () => {
    const definition = defineJob({
      kind: 'a',
      payload: z.object({ at: z.iso.datetime().transform((at) => new Date(at)), copies: z.number().default(1) }),
      maxAttempts: 5,
    })
    expectTypeOf(definition).toEqualTypeOf<
      JobDefinition<{ at: string; copies?: number | undefined }, { at: Date; copies: number }>
    >()
  })

  test('are unknown without a schema', () => {
    expectTypeOf(defineJob({ kind: 'a' })).toEqualTypeOf<JobDefinition<unknown, unknown>>()
  })

  test('let newJob accept the input of the schema and nothing else', () => {
    const definition = defineJob({ kind: 'a', payload: z.object({ invoiceId: z.string() }) })
    const compiledOnly = (create: typeof newJob) => {
      // @ts-expect-error the member is missing: `{}` must not widen what the definition says
      void create(definition, {}, { tenant: 'acme' })
      // @ts-expect-error a number is no invoice id
      void create(definition, { invoiceId: 42 }, { tenant: 'acme' })
      // @ts-expect-error every job has a tenant
      void create(definition, { invoiceId: '42' }, {})
      return create(definition, { invoiceId: '42' }, { tenant: 'acme' })
    }
    expectTypeOf(compiledOnly).returns.resolves.toEqualTypeOf<NewJob>()
  })

  test('do not let an option be misspelt', () => {
    // @ts-expect-error there is no such option
    expect(() => defineJob({ kind: 'a', maxAttemps: 3 })).toThrow(ConfigurationError)
    expectTypeOf<EnqueueOptions>().not.toHaveProperty('transaction')
  })
})
