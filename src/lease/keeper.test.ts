import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import { LeaseLostError } from '../errors.js'
import type { Job } from '../job/job.js'
import { HeldLeases } from './held-leases.js'
import { Keeper } from './keeper.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(async () => {
  await keeper?.stop()
  vi.useRealTimers()
})

const leaseMs = 3_000
const heartbeatMs = 1_000
let keeper: Keeper | undefined

/** A keeper whose statements are answered by the test. */
async function create(answer: (ids: readonly string[]) => Promise<readonly string[]>) {
  const beats: { readonly atMs: number; readonly ids: readonly string[] }[] = []
  const events: string[] = []
  const leases = new HeldLeases(leaseMs)
  const startMs = performance.now()
  keeper = new Keeper({
    store: {
      extend: async (ids) => {
        beats.push({ atMs: Math.round(performance.now() - startMs), ids })
        return new Set(await answer(ids))
      },
    },
    leases,
    leaseMs,
    heartbeatMs,
    clock: systemClock,
    listener: {
      lost: (lease) => events.push(`lost ${lease.id}`),
      distrusted: (lease) => events.push(`distrusted ${lease.id} at ${Math.round(performance.now() - startMs)}`),
      blocked: (blockedMs) => events.push(`blocked ${Math.round(blockedMs)}`),
      failed: () => events.push('failed'),
      recovered: () => {},
    },
  })
  await keeper.start()
  const hold = (leaseId: string, ...ids: string[]) => {
    const jobs = ids.map((id) => ({ id }) as Job) // the keeper reads nothing else of a job
    return leases.hold({ leaseId, queue: 'q', jobs, sentAtMs: performance.now() })
  }
  return { keeper, beats, events, leases, hold }
}

const keepAll = async (ids: readonly string[]) => ids

test('all leases are extended in one statement per heartbeat', async () => {
  const { beats, hold, leases } = await create(keepAll)
  hold('a', '1', '2')
  hold('b', '3')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(beats).toEqual([
    { atMs: 1_000, ids: ['a', 'b'] },
    { atMs: 2_000, ids: ['a', 'b'] },
  ])
  const trusted = [...leases.all].map((lease) => lease.trustedUntilMs - performance.now())
  expect(trusted).toEqual([2_700, 2_700])
})

test('without leases the database is left alone (B101)', async () => {
  const { beats } = await create(keepAll)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(beats).toEqual([])
})

test('a lease that is missing in the answer aborts its handlers and is reported, once', async () => {
  const { events, leases, hold } = await create(async () => ['b'])
  const lost = hold('a', '1', '2')
  const kept = hold('b', '3')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(events).toEqual(['lost a'])
  expect([...lost.jobs].map(({ abort }) => abort.signal.reason)).toMatchObject([{ jobId: '1' }, { jobId: '2' }])
  expect([...lost.jobs][0]?.abort.signal.reason).toBeInstanceOf(LeaseLostError)
  expect([...kept.jobs].every(({ abort }) => !abort.signal.aborted)).toBe(true)
  expect(leases.ids).toEqual(['b'])
})

test('a lease that was settled while its heartbeat was under way is not lost', async () => {
  let reply = () => {}
  const { events, leases, hold } = await create(async () => {
    await new Promise<void>((resolve) => {
      reply = resolve
    })
    return []
  })
  const lease = hold('a', '1')
  await vi.advanceTimersByTimeAsync(1_000)
  for (const held of [...lease.jobs]) leases.drop(held)
  reply()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(events).toEqual([])
})

test('a failed heartbeat is repeated well before the lease expires (B34)', async () => {
  let failures = 1
  const { beats, events, hold } = await create(async (ids) => {
    failures -= 1
    if (failures >= 0) throw new Error('no')
    return ids
  })
  hold('a', '1')
  await vi.advanceTimersByTimeAsync(30_000)
  expect(beats.slice(0, 3).map(({ atMs }) => atMs)).toEqual([1_000, 1_500, 2_500])
  expect(events).toEqual(['failed'])
})

test('when no heartbeat gets through the handlers are aborted before the database would give the jobs away', async () => {
  const { events, hold, leases } = await create(async () => {
    throw new Error('no')
  })
  const lease = hold('a', '1')
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(events.filter((event) => event !== 'failed')).toEqual(['distrusted a at 2750'])
  expect([...lease.jobs][0]?.abort.signal.reason).toBeInstanceOf(LeaseLostError)
  // Whether it is lost only the database can tell, and so the outcome is still sent.
  expect(lease.lost).toBe(false)
  expect(leases.ids).toEqual(['a'])
})

test('a heartbeat that is never answered does not keep the handlers from being aborted in time', async () => {
  const { events, hold, beats } = await create(() => new Promise(() => {}))
  hold('a', '1')
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(beats).toHaveLength(1)
  expect(events).toEqual(['distrusted a at 2750'])
})

test('a blocked event loop is named, and the next answer decides about the leases (B31)', async () => {
  // The clock moves on while no timer runs, as during a busy loop.
  const { events, hold, leases, beats } = await create(async () => ['kept'])
  hold('kept', '1')
  hold('reclaimed', '2')
  await vi.advanceTimersByTimeAsync(900)
  const now = performance.now()
  const blocked = vi.spyOn(performance, 'now').mockImplementation(() => now + 15_000)
  await vi.advanceTimersByTimeAsync(200)
  expect(beats).toHaveLength(1)
  expect(events[0]).toMatch(/^blocked 1[45]\d\d\d$/)
  expect(events.slice(1)).toEqual(['lost reclaimed'])
  expect(leases.ids).toEqual(['kept'])
  blocked.mockRestore()
})

test('it goes on until it is stopped, and then leaves no timer', async () => {
  const { keeper, beats, hold } = await create(keepAll)
  hold('a', '1')
  await vi.advanceTimersByTimeAsync(5_000)
  await keeper.stop()
  expect(beats).toHaveLength(5)
  expect(vi.getTimerCount()).toBe(0)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(beats).toHaveLength(5)
})
