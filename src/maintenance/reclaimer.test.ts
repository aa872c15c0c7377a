import { expect, onTestFinished, test, vi } from 'vitest'
import { RECLAIM_LEASES_MAX } from '../limits.js'
import { systemRandom } from '../random.js'
import type { Reclaimed } from '../store/store.js'
import { Reclaimer } from './reclaimer.js'

/** Runs the first round, whose calls are answered by `answer`, and counts them. */
async function firstRound(answer: (call: number) => Reclaimed) {
  vi.useFakeTimers()
  let calls = 0
  const reported: Reclaimed[] = []
  const reclaimer = new Reclaimer({
    store: {
      reclaim: async () => {
        calls += 1
        return answer(calls)
      },
    },
    intervalMs: 3_600_000,
    random: systemRandom,
    reclaimed: (reclaimed) => reported.push(reclaimed),
    succeeded: () => {},
    onError: () => {},
  })
  onTestFinished(async () => {
    await reclaimer.stop()
    vi.useRealTimers()
  })
  await reclaimer.start()
  await vi.advanceTimersByTimeAsync(1_000)
  return { calls, reported }
}

const nothing: Reclaimed = { leases: RECLAIM_LEASES_MAX, retried: 0, discarded: 0 }

test('a mass of expired leases without jobs does not hold up the jobs of the leases behind them', async () => {
  const last: Reclaimed = { leases: 1, retried: 3, discarded: 0 }
  const { calls, reported } = await firstRound((call) => (call <= 10 ? nothing : last))
  expect(calls).toBe(11)
  expect(reported).toEqual([last])
})

test('a round ends, also when every call finds as many leases as it may look at', async () => {
  const { calls } = await firstRound(() => nothing)
  expect(calls).toBe(100)
})
