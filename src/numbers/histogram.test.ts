import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BUCKET_MAX, bucketOf, middleMs } from './histogram.js'

test('every time from a millisecond to a day is within 9.1 % of the middle of its bucket', () => {
  fc.assert(
    fc.property(fc.double({ min: 1.000_001, max: 86_400_000, noNaN: true }), (ms) => {
      const middle = middleMs(bucketOf(ms))
      expect(Math.max(middle / ms, ms / middle)).toBeLessThanOrEqual(2 ** (1 / 8) + 1e-9)
    }),
  )
})

test('longer times are in the same or a later bucket', () => {
  fc.assert(
    fc.property(
      fc.double({ min: -10, max: 1e10, noNaN: true }),
      fc.double({ min: -10, max: 1e10, noNaN: true }),
      (a, b) => {
        expect(bucketOf(Math.min(a, b))).toBeLessThanOrEqual(bucketOf(Math.max(a, b)))
      },
    ),
  )
})

test.each([
  [-5, 0],
  [0, 0],
  [1, 0],
  [Number.NaN, 0],
  [1.001, 1],
  [2, 4],
  [2.001, 5],
  [1_024, 40],
  [86_400_000, BUCKET_MAX],
  [1e12, BUCKET_MAX],
  [Number.POSITIVE_INFINITY, BUCKET_MAX],
])('%d ms is in bucket %d', (ms, bucket) => {
  expect(bucketOf(ms)).toBe(bucket)
})
