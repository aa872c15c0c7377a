import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import type { Job } from '../job/job.js'
import { silentLogger } from '../logger.js'
import { FailureLog } from './failure-log.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const job: Job = {
  id: '7',
  queue: 'default',
  kind: 'mail',
  tenant: 'acme',
  payload: { secret: 'hunter2' },
  priority: 0,
  attempt: 2,
  maxAttempts: 5,
  createdAt: new Date(0),
  runAt: new Date(0),
  errors: [],
}
const failure = { name: 'TypeError', message: 'no address' }

function setUp() {
  const lines: [string, string, Readonly<Record<string, unknown>> | undefined][] = []
  const log = {
    ...silentLogger,
    warn: (message: string, fields?: Readonly<Record<string, unknown>>) => lines.push(['warn', message, fields]),
    error: (message: string, fields?: Readonly<Record<string, unknown>>) => lines.push(['error', message, fields]),
  }
  return { failures: new FailureLog({ log, clock: systemClock }), lines }
}

test('a failed attempt is a warning that says which, why and when again; a discarded job is an error; neither shows the payload', () => {
  const { failures, lines } = setUp()
  failures.decided(job, { type: 'complete' })
  failures.decided(job, { type: 'snooze', delayMs: 5 })
  failures.decided(job, { type: 'retry', delayMs: 1_500, failure })
  failures.decided({ ...job, attempt: 5 }, { type: 'discard', failure })
  const fields = { kind: 'mail', jobId: '7', tenant: 'acme', maxAttempts: 5, error: 'TypeError: no address' }
  expect(lines).toEqual([
    ['warn', 'an attempt failed; the job is tried again', { ...fields, attempt: 2, retryInMs: 1_500 }],
    ['error', 'a job is discarded', { ...fields, attempt: 5 }],
  ])
})

test('when everything fails a few lines are written for each kind and interval, and the rest is counted', () => {
  const { failures, lines } = setUp()
  const fail = (kind: string) => failures.decided({ ...job, kind }, { type: 'retry', delayMs: 1, failure })
  for (let count = 0; count < 1_000; count += 1) fail('mail')
  fail('report')
  expect(lines).toHaveLength(6)
  vi.advanceTimersByTime(10_000)
  fail('mail')
  fail('mail')
  expect(lines.slice(6).map(([, , fields]) => fields?.['unlogged'])).toEqual([995, undefined])
})
