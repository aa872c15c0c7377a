import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ConfigurationError, PayloadError } from '../errors.js'
import { DELAY_MS_MAX } from '../limits.js'
import { defineJob } from './define-job.js'
import { type EnqueueOptions, newJob } from './new-job.js'
import type { StandardSchema } from './standard-schema.js'

const anyJob = defineJob({ kind: 'any', queue: 'mail', priority: 7, maxAttempts: 3 })
const acme = { tenant: 'acme' }

const schemaOf = (validate: StandardSchema['~standard']['validate']): StandardSchema => ({
  '~standard': { version: 1, vendor: 'handmade', validate },
})

describe('a new job', () => {
  test('takes what is not given from its definition', async () => {
    expect(await newJob(anyJob, { a: [1] }, acme)).toEqual({
      kind: 'any',
      tenant: 'acme',
      queue: 'mail',
      priority: 7,
      maxAttempts: 3,
      payload: '{"a":[1]}',
    })
  })

  test('prefers the options of the call, each of them (B13)', async () => {
    const options = { tenant: 'acme', queue: 'bulk', priority: -5, maxAttempts: 9 }
    const runAt = new Date('2030-01-01T00:00:00Z')
    expect(await newJob(anyJob, 1, { ...options, runAt })).toEqual({ ...options, runAt, kind: 'any', payload: '1' })
    expect(await newJob(anyJob, 1, { ...options, delayMs: 60_000 })).toMatchObject({ delayMs: 60_000 })
  })

  test('has the key of the call, or else the one that its definition makes of the payload', async () => {
    const perAccount = defineJob({
      kind: 'sync',
      payload: z.object({ account: z.string().optional() }),
      key: ({ account }) => account,
    })
    expect(await newJob(perAccount, { account: 'a-7' }, acme)).toMatchObject({ key: 'a-7' })
    expect(await newJob(perAccount, { account: 'a-7' }, { ...acme, key: 'other' })).toMatchObject({ key: 'other' })
    for (const [payload, options] of [
      [{}, acme],
      [{ account: 'a-7' }, { ...acme, key: null }],
    ] as const) {
      expect(await newJob(perAccount, payload, options)).not.toHaveProperty('key')
    }
    expect(await newJob(anyJob, 1, { ...acme, key: 'k' })).toMatchObject({ key: 'k' })
  })

  test('makes its key from the payload as it was given, and says of a wrong payload that it is wrong', async () => {
    const perAccount = defineJob({
      kind: 'sync',
      payload: z.object({ account: z.object({ id: z.string() }) }),
      key: ({ account }) => account.id,
    })
    const payload = { account: { id: 'before' } }
    const made = newJob(perAccount, payload, acme)
    payload.account.id = 'after'
    expect(await made).toMatchObject({ key: 'before', payload: '{"account":{"id":"before"}}' })
    await expect(newJob(perAccount, {} as never, acme)).rejects.toThrow(PayloadError)
    await expect(newJob(perAccount, { account: { id: '' } }, acme)).rejects.toThrow('expected key to be a string of 1')
  })

  test('keeps its own copy of runAt', async () => {
    const runAt = new Date(0)
    const job = await newJob(anyJob, 1, { ...acme, runAt })
    runAt.setTime(1)
    expect(job.runAt).toEqual(new Date(0))
  })

  test('accepts any well-formed name as its tenant (B94)', async () => {
    const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter((name) => name.length <= 255)
    await fc.assert(
      fc.asyncProperty(names, async (tenant) => {
        fc.pre(!tenant.includes('\0'))
        expect((await newJob(anyJob, 1, { tenant })).tenant).toBe(tenant)
      }),
    )
  })

  test.each<[object, string]>([
    [{}, 'expected tenant to be a string of 1 to 255 bytes in UTF-8, got undefined'],
    [{ tenant: '' }, 'expected tenant to be a string of 1 to 255 bytes in UTF-8, got ""'],
    [{ tenant: 42 }, 'got 42'],
    [{ tenant: 'a\0' }, 'without NUL'],
    [{ ...acme, key: '' }, 'expected key to be a string of 1 to 255 bytes in UTF-8, got ""'],
    [{ ...acme, key: 7 }, 'expected key to be a string of 1 to 255 bytes in UTF-8, got 7'],
    [{ ...acme, key: 'k'.repeat(256) }, 'expected key to be a string of 1 to 255 bytes in UTF-8'],
    [{ ...acme, priorty: 1 }, 'unknown option "priorty" of enqueue; did you mean priority?'],
    [{ ...acme, delay: 1 }, 'unknown option "delay" of enqueue; did you mean delayMs?'],
    [{ ...acme, transacton: 1 }, 'did you mean transaction?'],
    [{ ...acme, transaction: {} }, 'transaction is an option of enqueueMany as a whole'],
    [{ ...acme, queue: null }, 'expected queue to be a string of 1 to 255 bytes in UTF-8, got null'],
    [{ ...acme, maxAttempts: 0 }, 'expected maxAttempts to be an integer from 1 to 10000, got 0'],
    [{ ...acme, priority: 1.5 }, 'expected priority to be an integer from -1000 to 1000, got 1.5'],
    [{ ...acme, delayMs: -1 }, `expected delayMs to be an integer from 0 to ${DELAY_MS_MAX}, got -1`],
    [
      { ...acme, runAt: new Date(Number.NaN) },
      'expected runAt to be a valid Date, got an invalid Date; pass new Date(…)',
    ],
    [{ ...acme, runAt: '2030-01-01' }, 'expected runAt to be a valid Date, got "2030-01-01"; pass new Date(…)'],
    [{ ...acme, runAt: 1_900_000_000_000 }, 'expected runAt to be a valid Date, got 1900000000000'],
    [{ ...acme, runAt: new Date(8.64e15) }, 'expected runAt to be a Date in the years 1 to 9999'],
    [{ ...acme, runAt: new Date(0), delayMs: 0 }, 'runAt and delayMs are both given; give the time or the delay'],
  ])('with the options %j is refused (B13)', async (options, words) => {
    const refused = newJob(anyJob, 1, options as EnqueueOptions)
    await expect(refused).rejects.toBeInstanceOf(ConfigurationError)
    await expect(refused).rejects.toThrow(words)
  })

  test('refuses a kind that is given by name only', async () => {
    await expect(newJob('any' as never, 1 as never, acme)).rejects.toThrow(
      'expected the first argument of enqueue to be what defineJob returned, got "any"',
    )
  })
})

describe('the payload of a new job', () => {
  const dated = defineJob({ kind: 'dated', payload: z.object({ at: z.coerce.date(), copies: z.number().default(1) }) })

  test('is stored as given, not as the schema turns it out (B58)', async () => {
    const job = await newJob(dated, { at: '2030-01-01' }, acme)
    expect(job.payload).toBe('{"at":"2030-01-01"}')
  })

  test('that JSON cannot carry is refused although the schema accepts it (B58)', async () => {
    await expect(newJob(dated, { at: new Date(0) }, acme)).rejects.toMatchObject({
      path: '$.at',
      code: 'PAYLOAD_INVALID',
    })
  })

  test('that the schema refuses is rejected with every issue and the path of the first', async () => {
    const lines = defineJob({ kind: 'lines', payload: z.object({ lines: z.array(z.object({ price: z.number() })) }) })
    const refused = newJob(lines, { lines: [{ price: 1 }, { price: 'x' }, {}] } as never, acme)
    await expect(refused).rejects.toBeInstanceOf(PayloadError)
    await expect(refused).rejects.toMatchObject({ path: '$.lines[1].price' })
    await expect(refused).rejects.toThrow(
      /refused by the schema of kind "lines": \$\.lines\[1\]\.price: .*; \$\.lines\[2\]/,
    )
  })

  test('over the limit of the client is refused', async () => {
    await expect(newJob(anyJob, 'x'.repeat(9), acme, { payloadBytesMax: 10 })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    })
  })

  test('is what it was at the time of the call, even if the schema is slow and the caller changes it', async () => {
    const slow = schemaOf(async (value) => {
      await new Promise((resolve) => setImmediate(resolve))
      return { value }
    })
    const payload = { n: 1 }
    const pending = newJob(defineJob({ kind: 'slow', payload: slow }), payload, acme)
    payload.n = 2
    expect((await pending).payload).toBe('{"n":1}')
  })

  test('is not stored when an asynchronous schema refuses it', async () => {
    const strict = defineJob({
      kind: 'strict',
      payload: schemaOf(async () => ({ issues: [{ message: 'no', path: ['a', { key: 0 }, 'my key'] }] })),
    })
    await expect(newJob(strict, {}, acme)).rejects.toThrow('$.a[0]["my key"]: no')
  })

  test('with a hundred thousand issues is refused in a short text', async () => {
    const issues = Array.from({ length: 100_000 }, (_, at) => ({ message: 'wrong', path: [at] }))
    const refused = newJob(defineJob({ kind: 'many', payload: schemaOf(() => ({ issues })) }), [], acme)
    await expect(refused).rejects.toThrow('$[19]: wrong; … and 99980 more')
  })

  test('rejects with the error of a schema that throws', async () => {
    const broken = defineJob({
      kind: 'broken',
      payload: schemaOf(() => {
        throw new Error('schema is broken')
      }),
    })
    await expect(newJob(broken, {}, acme)).rejects.toThrow('schema is broken')
  })
})
