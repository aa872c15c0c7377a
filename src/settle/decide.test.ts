import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../errors.js'
import { ATTEMPTS_MAX, DELAY_MS_MAX, ERROR_TEXT_MAX } from '../limits.js'
import { type RetryFunction, resolveRetry } from '../retry/policy.js'
import { type AttemptCircumstances, type AttemptResult, decideOutcome } from './decide.js'
import { cancel, discard, isPlannedExit, snooze } from './planned-exit.js'

const circumstances: AttemptCircumstances = {
  attempt: 2,
  maxAttempts: 5,
  retry: resolveRetry({ jitter: 'none' }),
  random: { next: () => 0, uuid: () => 'unused' },
}
const returned = (value: unknown): AttemptResult => ({ type: 'returned', value })
const threw = (error: unknown): AttemptResult => ({ type: 'threw', error })
const lastAttempt = { ...circumstances, attempt: 5 }

describe('a handler that returns', () => {
  test('nothing completes its job', () => {
    expect(decideOutcome(returned(undefined), circumstances)).toEqual({ outcome: { type: 'complete' } })
  })

  test('a planned exit gets what it planned, on the last attempt too', () => {
    for (const at of [circumstances, lastAttempt]) {
      expect(decideOutcome(returned(snooze(60_000)), at)).toEqual({ outcome: { type: 'snooze', delayMs: 60_000 } })
      expect(decideOutcome(returned(cancel('obsolete')), at)).toEqual({
        outcome: { type: 'cancel', reason: 'obsolete' },
      })
      expect(decideOutcome(returned(discard('no such invoice')), at)).toEqual({
        outcome: { type: 'discard', failure: { name: 'Discarded', message: 'no such invoice' } },
      })
    }
  })

  const circular = { self: {} }
  circular.self = circular

  test.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['true', true, 'true'],
    ['42n', 42n, '42n'],
    ['a circular object', circular, 'an object'],
    ['a Map', new Map(), 'an object of class Map'],
    ['a function', () => {}, 'a function'],
    ['a string of 50 MB', 'x'.repeat(50_000_000), `"${'x'.repeat(80)}…"`],
    ['a NUL', 'a\0b', '"a\\u0000b"'],
    ['what only looks like a planned exit', { type: 'cancel', reason: 'x' }, 'an object'],
  ])('%s has failed, and is told what it may return (B39)', (_, value, shown) => {
    const message = `the handler returned ${shown}; return nothing, context.snooze(ms), context.cancel(reason) or context.discard(reason)`
    const failure = { name: 'UnexpectedReturn', message }
    expect(decideOutcome(returned(value), circumstances).outcome).toEqual({ type: 'retry', delayMs: 2_000, failure })
    expect(decideOutcome(returned(value), lastAttempt).outcome).toEqual({ type: 'discard', failure })
  })

  test('a Proxy that throws on every trap has failed', () => {
    const thrower = () => {
      throw new Error('trap')
    }
    const hostile = new Proxy({}, { get: thrower, getOwnPropertyDescriptor: thrower, getPrototypeOf: thrower })
    expect(decideOutcome(returned(hostile), circumstances).outcome).toMatchObject({ type: 'retry' })
  })
})

describe('a handler that throws', () => {
  test('is retried after the back-off of its attempt', () => {
    expect(decideOutcome(threw(new Error('boom')), circumstances)).toMatchObject({
      outcome: { type: 'retry', delayMs: 2_000, failure: { name: 'Error', message: 'boom' } },
    })
  })

  test.each([
    [4, 5, 'retry'],
    [5, 5, 'discard'],
    [6, 5, 'discard'],
    [1, 1, 'discard'],
  ])('on attempt %i of %i ends in %s', (attempt, maxAttempts, type) => {
    const decision = decideOutcome(threw(new Error('boom')), { ...circumstances, attempt, maxAttempts })
    expect(decision.outcome.type).toBe(type)
  })

  test('passes the thrown value itself to a retry function', () => {
    const thrown = Object.freeze({ retryAfterMs: 77 })
    const retry = resolveRetry((_, error) => (error as typeof thrown).retryAfterMs)
    expect(decideOutcome(threw(thrown), { ...circumstances, retry })).toMatchObject({ outcome: { delayMs: 77 } })
  })

  test('is retried by the default back-off, with a warning, when its retry function is broken (B40)', () => {
    const { outcome, warning } = decideOutcome(threw(new Error('boom')), {
      ...circumstances,
      retry: resolveRetry((() => 'soon') as unknown as RetryFunction),
    })
    expect(outcome).toMatchObject({ type: 'retry', delayMs: 0 })
    expect(warning).toContain('got "soon"')
  })

  test('a planned exit has failed: exits are returned', () => {
    expect(decideOutcome(threw(snooze(5)), circumstances).outcome.type).toBe('retry')
  })
})

test('a payload that no longer passes its schema is discarded at once with the issues', () => {
  const issues = ['$.a: expected string\0', '$.b: required']
  expect(decideOutcome({ type: 'payload-refused', issues }, circumstances).outcome).toEqual({
    type: 'discard',
    failure: {
      name: 'PayloadRefused',
      message:
        'the stored payload does not pass the schema of its kind any more: $.a: expected string\uFFFD; $.b: required',
    },
  })
})

test('every ending of every attempt has an outcome with a usable delay', () => {
  const results = fc.oneof(
    fc.anything({ withBigInt: true }).map(returned),
    fc.anything({ withBigInt: true }).map(threw),
    fc.array(fc.string({ unit: 'binary' })).map((issues): AttemptResult => ({ type: 'payload-refused', issues })),
  )
  const attempts = fc.integer({ min: 1, max: ATTEMPTS_MAX })
  fc.assert(
    fc.property(results, attempts, attempts, (result, attempt, maxAttempts) => {
      const { outcome } = decideOutcome(result, { ...circumstances, attempt, maxAttempts, retry: resolveRetry({}) })
      if (outcome.type === 'retry') {
        expect(attempt).toBeLessThan(maxAttempts)
        expect(Number.isSafeInteger(outcome.delayMs) && outcome.delayMs >= 0).toBe(true)
      } else expect(['complete', 'discard']).toContain(outcome.type)
    }),
  )
})

describe('planned exits', () => {
  test.each([[-1], [1.5], ['60'], [Number.NaN], [DELAY_MS_MAX + 1], [undefined]])('snooze refuses %j', (ms) => {
    expect(() => snooze(ms as number)).toThrow(ConfigurationError)
    expect(() => snooze(ms as number)).toThrow('expected the delay of snooze to be an integer from 0 to')
  })

  test.each([[''], [undefined], [new Error('x')], [5]])('cancel and discard refuse %j as a reason', (reason) => {
    expect(() => cancel(reason as string)).toThrow('expected the reason of cancel to be a text for people, got')
    expect(() => discard(reason as string)).toThrow('expected the reason of discard to be a text for people, got')
  })

  test('reasons are cut and cleaned like every stored text (B38)', () => {
    const exit = cancel(`\0\ud800${'x'.repeat(10_000)}`)
    const { outcome } = decideOutcome(returned(exit), circumstances)
    expect(outcome.type === 'cancel' && outcome.reason).toMatch(/^\uFFFD\uFFFDx+… \[10002 characters\]$/)
    expect(outcome.type === 'cancel' && outcome.reason).toHaveLength(ERROR_TEXT_MAX)
  })

  test('are frozen and known by their brand alone', () => {
    expect(isPlannedExit(snooze(0)) && Object.isFrozen(snooze(0))).toBe(true)
    expect(isPlannedExit({ ...JSON.parse(JSON.stringify(cancel('x'))) })).toBe(false)
    expect(isPlannedExit(Object.create(cancel('x')))).toBe(false)
  })
})
