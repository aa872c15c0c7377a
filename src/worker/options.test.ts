import { expect, test } from 'vitest'
import { ConfigurationError } from '../errors.js'
import { resolveWorkerOptions, type WorkerOptions } from './options.js'

test('a worker needs no options', () => {
  expect(resolveWorkerOptions()).toEqual({
    queues: ['default'],
    concurrency: 8,
    claimBatchMax: 100,
    kinds: undefined,
    leaseMs: 30_000,
    heartbeatMs: 10_000,
    shutdownTimeoutMs: 30_000,
    pollMinMs: 100,
    pollMaxMs: 2_000,
    listen: true,
    reclaimIntervalMs: 4_000,
    observe: {},
  })
})

test('the heartbeat follows the lease, and the longest poll is never below the shortest', () => {
  expect(resolveWorkerOptions({ leaseMs: 1_000 }).heartbeatMs).toBe(333)
  expect(resolveWorkerOptions({ pollMinMs: 5_000 }).pollMaxMs).toBe(5_000)
})

test.each<[string, unknown, RegExp]>([
  ['an unknown name', { concurency: 4 }, /unknown option "concurency".*did you mean concurrency/],
  ['no slots', { concurrency: 0 }, /concurrency.*1 to 10000, got 0/],
  ['half a slot', { concurrency: 1.5 }, /concurrency/],
  ['a number as text', { concurrency: '8' }, /concurrency.*got "8"/],
  ['NaN', { leaseMs: Number.NaN }, /leaseMs.*got NaN/],
  ['a lease below a second', { leaseMs: 10 }, /leaseMs/],
  ['a claim of more than 500', { claimBatchMax: 501 }, /claimBatchMax.*500/],
  ['both queue and queues', { queue: 'a', queues: ['b'] }, /either queue or queues/],
  ['no queue', { queues: [] }, /queues.*at least one/],
  ['an empty name', { queues: [''] }, /queues\[0\]/],
  ['a queue twice', { queues: ['a', 'a'] }, /different names.*twice/],
  ['no kinds', { kinds: [] }, /kinds/],
  ['a poll of 0 (B101)', { pollMinMs: 0 }, /pollMinMs.*10 to/],
  ['a poll of -1 (B101)', { pollMaxMs: -1 }, /pollMaxMs/],
  ['a poll that shrinks', { pollMinMs: 500, pollMaxMs: 100 }, /pollMaxMs.*pollMinMs/],
  ['listen as text', { listen: 'no' }, /listen.*true or false/],
  ['an observer that is no function', { observe: { claim: 1 } }, /observe\.claim.*function/],
  ['an unknown observer', { observe: { claims: () => {} } }, /unknown option "claims"/],
])('%s is refused', (_, options, message) => {
  const resolve = () => resolveWorkerOptions(options as WorkerOptions)
  expect(resolve).toThrow(ConfigurationError)
  expect(resolve).toThrow(message)
})

test.each([30_000, 29_999, 15_001, 0, Number.NaN])(
  'a heartbeat of %s in a lease of 30,000 is refused: one that fails could not be repeated in time (B34)',
  (heartbeatMs) => {
    expect(() => resolveWorkerOptions({ leaseMs: 30_000, heartbeatMs })).toThrow(/heartbeatMs.*1 to 15000/)
  },
)
