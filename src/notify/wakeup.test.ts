import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import { Wakeup } from './wakeup.js'

let busy = false
let pollMaxMs = 800

beforeEach(() => {
  vi.useFakeTimers()
  busy = false
  pollMaxMs = 800
})
afterEach(() => {
  vi.useRealTimers()
})

/** Chance is in the middle, so ±25 % is nothing and the spread of a herd is half of its maximum. */
function create(): Wakeup {
  const random = { next: () => 0.5, uuid: () => '' }
  return new Wakeup({ clock: systemClock, random, pollMinMs: 100, pollMaxMs: () => pollMaxMs, isBusy: () => busy })
}

/** How long a wait takes in virtual time. */
async function timed(wait: Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  let endMs: number | undefined
  const noted = wait.then(() => {
    endMs = performance.now()
  })
  for (let step = 0; step < 10_000 && endMs === undefined; step += 1) await vi.advanceTimersByTimeAsync(1)
  await noted
  return (endMs ?? Number.NaN) - startMs
}

const { signal } = new AbortController()

test('the poll backs off while nothing is found, and starts again after a find', async () => {
  const wakeup = create()
  const waits: number[] = []
  for (const found of [false, false, false, false, false, true, false])
    waits.push(await timed(wakeup.wait(found, signal)))
  expect(waits).toEqual([100, 200, 400, 800, 800, 100, 200])
})

test('the poll follows a maximum that changes with the state of the notifications', async () => {
  const wakeup = create()
  pollMaxMs = 100
  expect(await timed(wakeup.wait(false, signal))).toBe(100)
  expect(await timed(wakeup.wait(false, signal))).toBe(100)
  pollMaxMs = 200
  expect(await timed(wakeup.wait(false, signal))).toBe(100)
  expect(await timed(wakeup.wait(false, signal))).toBe(200)
})

test('a hint wakes an idle worker at once', async () => {
  const wakeup = create()
  const wait = wakeup.wait(false, signal)
  await vi.advanceTimersByTimeAsync(40)
  wakeup.hint()
  expect(await timed(wait)).toBeLessThanOrEqual(1)
})

test('a freed slot wakes it only where a limit holds jobs back, or a key may', async () => {
  const wakeup = create()
  wakeup.slotFreed({ keyed: false })
  expect(await timed(wakeup.wait(true, signal))).toBe(100)
  wakeup.heldBack = true
  wakeup.slotFreed({ keyed: false })
  expect(await timed(wakeup.wait(true, signal))).toBeLessThanOrEqual(1)
  wakeup.look()
  wakeup.heldBack = false
  wakeup.slotFreed({ keyed: true })
  expect(await timed(wakeup.wait(true, signal))).toBeLessThanOrEqual(1)
})

test('a hint that came while the claim was under way is not forgotten', async () => {
  const wakeup = create()
  wakeup.look()
  wakeup.hint()
  expect(await timed(wakeup.wait(true, signal))).toBeLessThanOrEqual(1)
})

test('hints before a look are answered by it', async () => {
  const wakeup = create()
  wakeup.hint()
  wakeup.hint()
  wakeup.look()
  expect(await timed(wakeup.wait(true, signal))).toBe(100)
})

test('a worker that has jobs lets an idle one go first', async () => {
  busy = true
  const wakeup = create()
  const wait = wakeup.wait(true, signal)
  wakeup.hint()
  expect(await timed(wait)).toBe(5)
  wakeup.look()
  wakeup.hint()
  expect(await timed(wakeup.wait(true, signal))).toBe(5)
})

test('it wakes when a job becomes due, and never later than the poll', async () => {
  const wakeup = create()
  wakeup.hintIn(30)
  expect(await timed(wakeup.wait(true, signal))).toBe(31)
  wakeup.look()
  wakeup.hintIn(500)
  expect(await timed(wakeup.wait(true, signal))).toBe(100)
})

test('a due time that is learned during the wait shortens it, and a later one does not lengthen it', async () => {
  const wakeup = create()
  const wait = wakeup.wait(true, signal)
  wakeup.hintIn(20)
  wakeup.hintIn(60)
  expect(await timed(wait)).toBe(21)
})

test('a due time outlasts the looks before it', async () => {
  const wakeup = create()
  wakeup.hintIn(150)
  expect(await timed(wakeup.wait(true, signal))).toBe(100)
  wakeup.look()
  expect(await timed(wakeup.wait(true, signal))).toBe(51)
})

test('it ends at once when it is aborted, and leaves no timer', async () => {
  const wakeup = create()
  const stop = new AbortController()
  const wait = wakeup.wait(false, stop.signal)
  stop.abort()
  await wait
  expect(vi.getTimerCount()).toBe(0)
  await wakeup.wait(false, stop.signal)
  expect(vi.getTimerCount()).toBe(0)
})
