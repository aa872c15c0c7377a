import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../errors.js'
import { ATTEMPTS_MAX, DELAY_MS_MAX } from '../limits.js'
import { BACKOFF_DEFAULTS, DEFAULT_RETRY, nextDelayMs, type RetryOptions, resolveRetry } from './policy.js'

const fixed = (value: number) => ({ next: () => value, uuid: () => 'unused' })
const ALMOST_ONE = 1 - Number.EPSILON / 2
const error = new Error('boom')
const delayAt = (options: RetryOptions | undefined, attempt: number, chance = ALMOST_ONE) =>
  nextDelayMs(resolveRetry(options), { attempt, error, random: fixed(chance) })

describe('exponential back-off', () => {
  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [12, 2_048_000],
    [13, 3_600_000],
    [14, 3_600_000],
  ])('after failure %i a job waits at most %i ms by default', (attempt, longestMs) => {
    expect(delayAt(undefined, attempt)).toEqual({ delayMs: longestMs })
    expect(delayAt({ jitter: 'none' }, attempt)).toEqual({ delayMs: longestMs })
  })

  test('full jitter spreads the wait over everything from nothing to the computed one', () => {
    expect(delayAt(undefined, 3, 0)).toEqual({ delayMs: 0 })
    expect(delayAt(undefined, 3, 0.5)).toEqual({ delayMs: 2_000 })
    expect(delayAt(undefined, 3, ALMOST_ONE)).toEqual({ delayMs: 4_000 })
  })

  test.each([31, 32, 53, 64, 200, 999, 1_024, 1_100, ATTEMPTS_MAX])('attempt %i does not overflow (B40)', (attempt) => {
    for (const options of [{}, { baseMs: 0 }, { factor: 1 }, { factor: 10 }, { factor: 1.5 }, { factor: 1_000 }]) {
      const { delayMs } = delayAt(options, attempt)
      expect(delayMs).toBe('baseMs' in options ? 0 : 'factor' in options && options.factor === 1 ? 1_000 : 3_600_000)
    }
  })

  test('any policy at any attempt gives an integer between 0 and its cap (B40)', () => {
    const policies = fc
      .record({
        maxMs: fc.integer({ min: 0, max: DELAY_MS_MAX }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        factor: fc.double({ min: 1, max: 1_000, noNaN: true }),
        jitter: fc.constantFrom('full', 'none'),
      })
      .map(({ share, ...options }) => ({ ...options, baseMs: Math.floor(options.maxMs * share) }))
    const chance = fc.double({ min: 0, max: ALMOST_ONE, noNaN: true })
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: ATTEMPTS_MAX }), chance, (options, attempt, drawn) => {
        const { delayMs, warning } = delayAt(options, attempt, drawn)
        expect(Number.isSafeInteger(delayMs)).toBe(true)
        expect(delayMs).toBeGreaterThanOrEqual(0)
        expect(delayMs).toBeLessThanOrEqual(options.maxMs)
        expect(warning).toBeUndefined()
      }),
    )
  })
})

describe('a retry function', () => {
  test('is given the attempt and what was thrown, and its answer is used', () => {
    const calls: unknown[] = []
    const answer = delayAt((attempt, thrown) => {
      calls.push([attempt, thrown])
      return 42
    }, 7)
    expect(answer).toEqual({ delayMs: 42 })
    expect(calls).toEqual([[7, error]])
  })

  test.each([
    [0, 0],
    [-0, 0],
    [1.4, 1],
    [DELAY_MS_MAX, DELAY_MS_MAX],
  ])('may answer %d, which means %d', (answer, delayMs) => {
    expect(delayAt(() => answer, 1)).toEqual({ delayMs })
  })

  test.each<[unknown, string]>([
    [Number.NaN, 'got NaN'],
    [-1, 'got -1'],
    [Number.POSITIVE_INFINITY, 'got Infinity'],
    [DELAY_MS_MAX + 1, `got ${DELAY_MS_MAX + 1}`],
    ['5', 'got "5"'],
    [undefined, 'got undefined'],
    [5n, 'got 5n'],
    [Promise.resolve(5), 'got an object of class Promise'],
  ])('that answers %s is replaced by the default back-off with a warning (B40)', (answer, words) => {
    const { delayMs, warning } = delayAt(() => answer as number, 3)
    expect(delayMs).toBe(4_000)
    expect(warning).toContain('expected the retry function to return a number of milliseconds from 0 to')
    expect(warning).toContain(words)
  })

  test.each<[string, unknown, string]>([
    ['an Error', new Error('broken'), 'threw "broken"'],
    ['undefined', undefined, 'threw undefined'],
    [
      'an error whose message throws',
      Object.defineProperty(new Error('x'), 'message', {
        get() {
          throw new Error('again')
        },
      }),
      'threw a value that cannot be read',
    ],
  ])('that throws %s is replaced by the default back-off with a warning (B40)', (_, thrown, words) => {
    const { delayMs, warning } = delayAt(() => {
      throw thrown
    }, 1)
    expect(delayMs).toBe(1_000)
    expect(warning).toContain(words)
    expect(warning).toContain('the default back-off is used instead')
  })

  test('that is async and rejects leaves no unhandled rejection (B40)', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', listen)
    try {
      delayAt((() => Promise.reject(new Error('async'))) as never, 1)
      // Node reports unhandled rejections before the next turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      process.off('unhandledRejection', listen)
    }
    expect(unhandled).toEqual([])
  })
})

describe('resolving the options', () => {
  test('what is not given has its default, and the result is frozen', () => {
    const policy = resolveRetry({ baseMs: 5 })
    expect(policy).toEqual({ backoff: { ...BACKOFF_DEFAULTS, baseMs: 5 } })
    expect(Object.isFrozen(policy) && Object.isFrozen(policy.backoff)).toBe(true)
    expect(resolveRetry(undefined)).toBe(DEFAULT_RETRY)
  })

  test.each<[unknown, string]>([
    [{ base: 5 }, 'unknown option "base" of retry; did you mean baseMs?'],
    [{ baseMs: -1 }, `expected retry.baseMs to be an integer from 0 to ${DELAY_MS_MAX}, got -1`],
    [{ baseMs: '1000' }, 'got "1000"'],
    [{ baseMs: null }, 'got null'],
    [{ factor: 0.5 }, 'expected retry.factor to be a number from 1 to 1000, got 0.5'],
    [{ factor: Number.NaN }, 'got NaN'],
    [{ maxMs: Number.POSITIVE_INFINITY }, 'expected retry.maxMs to be an integer'],
    [{ jitter: true }, `expected retry.jitter to be one of 'full', 'none', got true`],
    [{ baseMs: 7_200_000 }, 'expected retry.baseMs to be at most retry.maxMs (3600000), got 7200000'],
    [3, 'expected the options of retry to be an object, got 3'],
    [null, 'expected the options of retry to be an object, got null'],
  ])('%j is refused (B13)', (options, words) => {
    expect(() => resolveRetry(options as RetryOptions)).toThrow(ConfigurationError)
    expect(() => resolveRetry(options as RetryOptions)).toThrow(words)
  })
})
