import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import { Slots } from './slots.js'

const { signal } = new AbortController()

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('an idle worker gets all free slots at once, at most as many as it wants', async () => {
  const slots = new Slots(10, systemClock)
  expect(await slots.reserve(4, signal)).toBe(4)
  expect(await slots.reserve(100, signal)).toBe(6)
  expect(slots.taken).toBe(10)
})

test('slots that are freed within a few milliseconds are granted together', async () => {
  const slots = new Slots(10, systemClock)
  await slots.reserve(10, signal)
  const granted = slots.reserve(10, signal)
  slots.free()
  await vi.advanceTimersByTimeAsync(1)
  slots.free()
  slots.free()
  await vi.advanceTimersByTimeAsync(1)
  expect(slots.taken).toBe(7)
  await vi.advanceTimersByTimeAsync(1)
  expect(slots.taken).toBe(10)
  expect(await granted).toBe(3)
})

test('a slot that has been free for a while is granted at once', async () => {
  const slots = new Slots(10, systemClock)
  await slots.reserve(10, signal)
  slots.free()
  await vi.advanceTimersByTimeAsync(50)
  expect(await slots.reserve(10, signal)).toBe(1)
})

test('with half of the slots free nobody waits for more', async () => {
  const slots = new Slots(4, systemClock)
  await slots.reserve(4, signal)
  const granted = slots.reserve(4, signal)
  slots.free()
  slots.free()
  expect(await granted).toBe(2)
})

test('a worker with one slot is never kept waiting', async () => {
  const slots = new Slots(1, systemClock)
  await slots.reserve(1, signal)
  const granted = slots.reserve(1, signal)
  slots.free()
  expect(await granted).toBe(1)
})

test('queues that wait together share what becomes free, and none comes twice before the others', async () => {
  const slots = new Slots(4, systemClock)
  await slots.reserve(4, signal)
  const first = slots.reserve(4, signal)
  const second = slots.reserve(4, signal)
  for (let count = 0; count < 4; count += 1) slots.free()
  await vi.advanceTimersByTimeAsync(10)
  expect(await Promise.all([first, second])).toEqual([1, 2])
  const again = slots.reserve(4, signal)
  expect(await again).toBe(1)
})

test('what a claim did not need is free again', async () => {
  const slots = new Slots(5, systemClock)
  await slots.reserve(5, signal)
  slots.unreserve(3)
  expect(slots.taken).toBe(2)
  expect(await slots.reserve(5, signal)).toBe(3)
})

test('an aborted wait answers 0 and takes nothing', async () => {
  const slots = new Slots(2, systemClock)
  await slots.reserve(2, signal)
  const stop = new AbortController()
  const granted = slots.reserve(2, stop.signal)
  stop.abort()
  expect(await granted).toBe(0)
  slots.free()
  expect(slots.taken).toBe(1)
  expect(await slots.reserve(1, stop.signal)).toBe(0)
})
