import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PayloadError } from '../../src/errors.js'
import { encodePayload } from '../../src/job/payload.js'
import { PAYLOAD_BYTES_DEFAULT } from '../../src/limits.js'
import { useSharedDatabase } from '../support/claims.js'

const database = useSharedDatabase()

function encode(value: unknown): string {
  return encodePayload(value, PAYLOAD_BYTES_DEFAULT)
}

/** Every value that JSON can carry, as it must come out of the database again. */
const VALUES: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['false', false],
  ['an empty string', ''],
  ['a bare number', 42],
  ['zero', 0],
  ['negative zero', -0],
  ['negative zero inside', { a: [-0, 0] }],
  ['the largest double', Number.MAX_VALUE],
  ['the smallest double', Number.MIN_VALUE],
  ['an integer beyond 2^53', 2 ** 63],
  ['a number with many digits', 0.1 + 0.2],
  ['an empty object', {}],
  ['an empty array', []],
  ['an array at the top', [[1, [2, [3]]], null]],
  ['a member named __proto__', JSON.parse('{"__proto__":{"admin":true},"constructor":1}')],
  ['members whose order is not that of their names', { b: 1, a: 2, 10: 3, 9: 4 }],
  ['an empty name', { '': 1 }],
  ['a pair of surrogates', '😀'],
  ['a lone surrogate', '\ud800'],
  ['a name that is a lone surrogate', { '\udfff': 1 }],
  ['control characters', '\u0001\u001f\u007f\u0085\u2028\u2029\ufeff\ufffe'],
  ['quotes and backslashes', `"'\\{}$1$$:name?--/*`],
  ['text that looks like an array literal', '{NULL,"a,b"}'],
  ['the text NULL', 'NULL'],
  ['combining characters that must not be normalized', 'e\u0301\u00e9'],
]

test.each(VALUES)('%s goes through the database exactly (B58, B59)', async (_name, value) => {
  const queue = database.queue()
  await queue.enqueue({ payload: encode(value) })
  const [job] = (await queue.claim(1)).jobs
  expect(job?.payload).toStrictEqual(value)
  expect(Object.is(job?.payload, -0)).toBe(Object.is(value, -0))
})

test('a member named __proto__ changes no prototype on its way (B94)', async () => {
  const queue = database.queue()
  await queue.enqueue({ payload: '{"__proto__":{"admin":true}}' })
  const payload = (await queue.claim(1)).jobs[0]?.payload as object
  expect(Object.getPrototypeOf(payload)).toBe(Object.prototype)
  expect(Object.keys(payload)).toEqual(['__proto__'])
  expect('admin' in payload).toBe(false)
})

test('whatever is JSON goes through the database exactly, jobs of all kinds in one statement', async () => {
  const queue = database.queue()
  const value = fc.jsonValue({ stringUnit: 'binary' }).filter((json) => !JSON.stringify(json).includes('\\u0000'))
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 20 }), async (values) => {
      await queue.enqueue(...values.map((payload) => ({ payload: encode(payload) })))
      const claim = await queue.claim(20)
      expect(claim.jobs.map(({ payload }) => payload)).toStrictEqual(values)
      await queue.settle(claim)
    }),
    { numRuns: 40 },
  )
})

test('a payload may have 262,144 bytes and not one more', async () => {
  const queue = database.queue()
  const largest = 'ж'.repeat(PAYLOAD_BYTES_DEFAULT / 2 - 1)
  await queue.enqueue({ payload: encode(largest) })
  expect((await queue.claim(1)).jobs[0]?.payload).toBe(largest)
  expect(() => encode(`${largest}x`)).toThrow(PayloadError)
})

test('a claim of 500 jobs with large payloads delivers them all', async () => {
  const queue = database.queue()
  const size = 20_000
  await queue.enqueueMany(500, { payload: JSON.stringify('x'.repeat(size)) })
  const claim = await queue.claim(500)
  expect(claim.jobs).toHaveLength(500)
  expect(claim.jobs.every(({ payload }) => (payload as string).length === size)).toBe(true)
})
