import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { distributionOf, percentile } from './statistics.js'

const oneTo = (n: number) => Float64Array.from({ length: n }, (_, index) => index + 1)

describe('percentile', () => {
  it.each([
    [100, 50, 50],
    [100, 95, 95],
    [100, 99, 99],
    [20, 95, 19],
    [20, 99, 20],
    [3, 50, 2],
    [4, 50, 2],
    [1, 99, 1],
    [7, 100, 7],
  ])('takes, of the values 1 to %i, as the %ith percentile the value %i', (n, percent, expected) => {
    expect(percentile(oneTo(n), percent)).toBe(expected)
  })

  it('is a value that at least so many percent do not exceed, and the smallest such value', () => {
    const values = fc.array(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 100 }), (times, percent) => {
        const found = percentile(Float64Array.from(times).sort(), percent)
        const atMost = times.filter((time) => time <= found).length
        const below = times.filter((time) => time < found).length
        expect(atMost * 100).toBeGreaterThanOrEqual(percent * times.length)
        expect(below * 100).toBeLessThan(percent * times.length)
      }),
    )
  })

  it('refuses an empty set and a percentile of zero', () => {
    expect(() => percentile(oneTo(0), 50)).toThrow(RangeError)
    expect(() => percentile(oneTo(5), 0)).toThrow(RangeError)
  })
})

describe('distributionOf', () => {
  it('describes unsorted values', () => {
    expect(distributionOf([30, 10, 20, 40])).toEqual({ mean: 25, p50: 20, p95: 40, p99: 40, max: 40 })
  })

  it('sorts by number, not by text', () => {
    expect(distributionOf([9, 10, 100])?.p50).toBe(10)
  })

  it('knows nothing about no values', () => {
    expect(distributionOf([])).toBeUndefined()
  })
})
