import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import { silentLogger } from '../logger.js'
import { describeError, ErrorLog } from './error-log.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('a failure that repeats is logged at once, then seldom, and once more when it is over', () => {
  const lines: string[] = []
  const observed: unknown[] = []
  const log = {
    ...silentLogger,
    warn: (message: string, fields = {}) => lines.push(`${message} ${JSON.stringify(fields)}`),
    info: (message: string, fields = {}) => lines.push(`${message} ${JSON.stringify(fields)}`),
  }
  const errors = new ErrorLog({ log, clock: systemClock, observe: (error) => observed.push(error) })
  errors.succeeded('the claim')
  for (let count = 0; count < 150; count += 1) {
    errors.failed('the claim', new Error('down'))
    vi.advanceTimersByTime(100)
  }
  errors.failed('the heartbeat', new Error('down too'))
  errors.succeeded('the claim')
  expect(observed).toHaveLength(151)
  expect(lines).toEqual([
    'the claim failed; it is tried again {"failures":1,"error":"Error: down"}',
    'the claim failed; it is tried again {"failures":101,"error":"Error: down"}',
    'the heartbeat failed; it is tried again {"failures":1,"error":"Error: down too"}',
    'the claim works again {"failures":150}',
  ])
})

test('anything can be described in a log line (B39)', () => {
  const hostile = {
    toString() {
      throw new Error('no')
    },
  }
  const texts = [new TypeError('x'), 'text', 42n, Symbol('s'), undefined, null, hostile].map(describeError)
  expect(texts).toEqual([
    'TypeError: x',
    'text',
    '42',
    'Symbol(s)',
    'undefined',
    'null',
    'an error that cannot be described',
  ])
})
