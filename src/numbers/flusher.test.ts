import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Presence } from '../store/numbers-store.js'
import { Aggregator } from './aggregator.js'
import { Flusher } from './flusher.js'
import type { WindowPart } from './window.js'

const acme = { queue: 'mail', tenant: 'acme' }

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function setUp() {
  const calls: string[] = []
  const beats: Presence[] = []
  const recorded: WindowPart[] = []
  const errors: unknown[] = []
  const aggregator = new Aggregator()
  let refusal: Error | undefined
  const startedAt = Date.now()
  const clock = { monotonicMs: () => Date.now() - startedAt, wallClock: () => new Date() }
  const attempt = (call: string) => {
    calls.push(call)
    if (refusal) throw refusal
  }
  const flusher = new Flusher({
    store: {
      beat: async (presence) => {
        attempt('beat')
        beats.push(presence)
        return 6_000_000 + clock.monotonicMs()
      },
      record: async (_, part) => {
        attempt('record')
        recorded.push(part)
      },
      leave: async () => attempt('leave'),
    },
    aggregator,
    workerId: 'host:1:a',
    queues: ['mail'],
    kinds: ['send'],
    slots: 8,
    running: () => 3,
    clock,
    random: { next: () => 0.5, uuid: () => '' },
    succeeded: () => calls.push('succeeded'),
    onError: (error) => errors.push(error),
  })
  const refuse = (error: Error | undefined) => {
    refusal = error
  }
  return { flusher, aggregator, calls, beats, recorded, errors, clock, refuse }
}

test('a worker says that it is there at once, then every five seconds with what it has counted', async () => {
  const { flusher, aggregator, beats, calls, recorded, clock } = setUp()
  await flusher.start()
  await vi.advanceTimersByTimeAsync(0)
  expect(beats).toEqual([
    { workerId: 'host:1:a', queues: ['mail'], kinds: ['send'], slots: 8, running: 3, ageMs: expect.any(Number) },
  ])
  expect(calls).toEqual(['beat', 'succeeded'])
  aggregator.started(acme, 1, clock.monotonicMs())
  await vi.advanceTimersByTimeAsync(5_100)
  expect(calls).toEqual(['beat', 'succeeded', 'beat', 'record', 'succeeded'])
  expect(recorded).toMatchObject([{ queue: 'mail', minute: 100, started: [1] }])
  await flusher.stop()
})

test('a flush that fails loses nothing: the next one brings all of it', async () => {
  const { flusher, aggregator, recorded, errors, clock, refuse } = setUp()
  await flusher.start()
  await vi.advanceTimersByTimeAsync(0)
  aggregator.started(acme, 1, clock.monotonicMs())
  refuse(new Error('away'))
  await vi.advanceTimersByTimeAsync(5_100)
  expect(errors).toEqual([new Error('away')])
  aggregator.started(acme, 1, clock.monotonicMs())
  refuse(undefined)
  await vi.advanceTimersByTimeAsync(5_100)
  expect(recorded.map(({ started }) => started)).toEqual([[2]])
  await flusher.stop()
})

test('a worker that stops writes what is left and takes itself off the list', async () => {
  const { flusher, aggregator, calls, recorded, clock } = setUp()
  await flusher.start()
  await vi.advanceTimersByTimeAsync(0)
  aggregator.settled(acme, 'completed', clock.monotonicMs())
  await flusher.stop()
  expect(calls.slice(2)).toEqual(['record', 'leave'])
  expect(recorded).toMatchObject([{ completed: [1] }])
})

test('one that was never seen has nothing to take back', async () => {
  const { flusher, calls } = setUp()
  await flusher.stop()
  expect(calls).toEqual([])
})
