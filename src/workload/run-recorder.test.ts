import { expect, it, vi } from 'vitest'
import { RunRecorder } from './run-recorder.js'
import type { Workload } from './workload.js'

const workload: Workload = {
  jobs: [1, 2, 3].map(() => ({ tenant: 'a', dueMs: 0, durationMs: 1 })),
  noisyTenants: new Set(),
}
const progress = (indices: readonly number[], settled: number, settledMs = 0) => ({
  type: 'progress' as const,
  starts: indices.map((index) => ({ index, attempt: 1, startedMs: index, endedMs: index })),
  claimsMs: [1],
  settled,
  settledMs,
})
const never = new AbortController().signal

it('is settled when every job is, not when every handler has ended', async () => {
  const recorder = new RunRecorder(workload)
  const settled = vi.fn()
  const waiting = recorder.settled(never).then(settled)
  recorder.add(progress([0, 1, 2], 2, 7))
  await Promise.resolve()
  expect(settled).not.toHaveBeenCalled()
  recorder.add(progress([], 1, 5))
  await waiting
  expect(recorder.record()).toMatchObject({ claimsMs: [1, 1], settledMs: 7 })
  expect(recorder.record().starts.map(({ index }) => index)).toEqual([0, 1, 2])
})

it('tells the progress display which jobs have ended', () => {
  const onEnded = vi.fn()
  const recorder = new RunRecorder(workload, onEnded)
  recorder.add(progress([2, 0], 0))
  recorder.add(progress([], 2))
  expect(onEnded.mock.calls).toEqual([[[2, 0]]])
})

it('gives up on a run in which nothing happens any more, and says how far it came', async () => {
  vi.useFakeTimers()
  try {
    const recorder = new RunRecorder(workload)
    const outcome = recorder.settled(never).catch((error: Error) => error.message)
    await vi.advanceTimersByTimeAsync(59_000)
    recorder.add(progress([0, 1], 1))
    await vi.advanceTimersByTimeAsync(59_000)
    recorder.add(progress([], 0))
    await vi.advanceTimersByTimeAsync(61_000)
    expect(await outcome).toBe('the run stalled: of 3 jobs 2 have run and 1 are settled, and nothing more happens')
  } finally {
    vi.useRealTimers()
  }
})

it('stops waiting when the run is over for another reason', async () => {
  const over = new AbortController()
  const waiting = new RunRecorder(workload).settled(over.signal)
  over.abort()
  await expect(waiting).resolves.toBeUndefined()
})
