import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import type { Job } from '../job/job.js'
import { Wakeup } from '../notify/wakeup.js'
import type { Claim, ClaimRequest } from '../store/store.js'
import { type ClaimedJobs, ClaimLoop } from './claim-loop.js'
import { Slots } from './slots.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(async () => {
  await loop?.stop()
  vi.useRealTimers()
})

let loop: ClaimLoop | undefined

const leaseMs = 10_000
const jobs = (count: number): Job[] => Array.from({ length: count }, (_, index) => ({ id: String(index) }) as Job)

interface Answers {
  claim(request: ClaimRequest): Promise<Claim>
  claimed?(leaseId: string): Promise<readonly Job[]>
  room?(signal: AbortSignal): Promise<void>
}

/** A claim loop with four slots whose statements are answered by the test. */
async function create(answers: Answers, concurrency = 4) {
  const requests: ClaimRequest[] = []
  const claims: ClaimedJobs[] = []
  const lookups: string[] = []
  const errors: unknown[] = []
  let uuid = 0
  const random = { next: () => 0.5, uuid: () => `lease-${++uuid}` }
  const slots = new Slots(concurrency, systemClock)
  const isBusy = () => slots.taken > 0
  const wakeup = new Wakeup({ clock: systemClock, random, pollMinMs: 100, pollMaxMs: () => 2_000, isBusy })
  loop = new ClaimLoop({
    queue: 'q',
    kinds: ['a', 'b'],
    workerId: 'me',
    batchMax: 100,
    leaseMs,
    listening: true,
    store: {
      claim: (request) => {
        requests.push(request)
        return answers.claim(request)
      },
      claimed: (leaseId) => {
        lookups.push(leaseId)
        return answers.claimed?.(leaseId) ?? Promise.resolve([])
      },
    },
    slots,
    wakeup,
    completer: { room: (signal) => answers.room?.(signal) ?? Promise.resolve() },
    clock: systemClock,
    random,
    listener: {
      claimed: (claim) => claims.push(claim),
      observed: () => {},
      failed: (_, error) => errors.push(error),
      recovered: () => {},
    },
  })
  await loop.start()
  return { loop, slots, wakeup, requests, claims, lookups, errors }
}

test('it asks for as many jobs as slots are free, of the handled kinds only, and never for more (B03)', async () => {
  const { requests, slots } = await create({ claim: async ({ count }) => ({ jobs: jobs(count) }) })
  await vi.advanceTimersByTimeAsync(10_000)
  expect(requests).toEqual([
    {
      queue: 'q',
      leaseId: 'lease-1',
      workerId: 'me',
      kinds: ['a', 'b'],
      count: 4,
      leaseMs,
      listening: true,
      likelyEmpty: false,
    },
  ])
  expect(slots.taken).toBe(4)
})

test('after a full claim it claims again as soon as slots are free, without waiting for a poll', async () => {
  const { requests, slots } = await create({ claim: async ({ count }) => ({ jobs: jobs(count) }) })
  await vi.advanceTimersByTimeAsync(1)
  for (let count = 0; count < 4; count += 1) slots.free()
  await vi.advanceTimersByTimeAsync(5)
  expect(requests.map(({ count }) => count)).toEqual([4, 2, 2])
})

test('after a claim that was not filled it waits for a poll or a hint, and then asks for all free slots', async () => {
  const { requests, wakeup, slots } = await create({ claim: async () => ({ jobs: jobs(1) }) })
  await vi.advanceTimersByTimeAsync(99)
  expect(requests.map(({ count }) => count)).toEqual([4])
  await vi.advanceTimersByTimeAsync(1)
  expect(requests.map(({ count }) => count)).toEqual([4, 3])
  expect(slots.taken).toBe(2)
  wakeup.hint()
  await vi.advanceTimersByTimeAsync(10)
  expect(requests.map(({ count }) => count)).toEqual([4, 3, 2])
})

test('only a poll that comes without any reason is called likely empty', async () => {
  const answers: Claim[] = [{ jobs: jobs(1) }, { jobs: [] }, { jobs: [] }, { jobs: [], nextDueMs: 5 }]
  const { requests, wakeup } = await create({ claim: async () => answers.shift() ?? { jobs: [] } })
  await vi.advanceTimersByTimeAsync(100) // the start, and the poll after a find
  await vi.advanceTimersByTimeAsync(200) // a poll after nothing
  wakeup.hint()
  await vi.advanceTimersByTimeAsync(10) // the hint, then the due time that it brought
  await vi.advanceTimersByTimeAsync(2_000) // a poll
  expect(requests.map(({ likelyEmpty }) => likelyEmpty)).toEqual([false, false, true, false, false, true])
})

test('it looks again when the next job is due', async () => {
  let claims = 0
  const { requests } = await create({
    claim: async () => {
      claims += 1
      return claims === 1 ? { jobs: [], nextDueMs: 42.5 } : { jobs: [] }
    },
  })
  await vi.advanceTimersByTimeAsync(42)
  expect(requests).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(3)
  expect(requests).toHaveLength(2)
})

test('a job that is due but held by somebody else is left to the poll instead of being asked for in a loop', async () => {
  const { requests } = await create({ claim: async () => ({ jobs: [], nextDueMs: 0 }) })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(requests.length).toBeLessThan(8)
})

test('a claim whose reply was lost is found again by its lease id (B04)', async () => {
  const { claims, lookups, slots, requests } = await create({
    claim: ({ leaseId }) =>
      leaseId === 'lease-1' ? Promise.reject(new Error('connection lost')) : Promise.resolve({ jobs: [] }),
    claimed: async () => jobs(3),
  })
  const sentAtMs = performance.now()
  await vi.advanceTimersByTimeAsync(500)
  expect(lookups).toEqual(['lease-1'])
  expect(claims).toMatchObject([{ queue: 'q', leaseId: 'lease-1', sentAtMs }])
  expect(claims[0]?.jobs).toHaveLength(3)
  expect(slots.taken).toBe(3)
  expect(requests[1]).toMatchObject({ leaseId: 'lease-2', count: 1 })
})

test('what cannot be found by the end of its lease is not looked for any longer', async () => {
  const down = () => Promise.reject(new Error('connection lost'))
  const { lookups, requests, slots } = await create({ claim: down, claimed: down })
  await vi.advanceTimersByTimeAsync(leaseMs * 3)
  expect(new Set(lookups).size).toBeGreaterThanOrEqual(2)
  expect(requests.length).toBeGreaterThanOrEqual(2)
  expect(slots.taken).toBe(4) // reserved for the claim that is looked for at present
})

test('no number of failures ends the loop, and none is followed at once by the next try (B72)', async () => {
  let failures = 20
  const { claims, requests, errors } = await create({
    claim: async ({ count }) => {
      failures -= 1
      if (failures >= 0) throw new Error(`failure ${failures}`)
      return { jobs: jobs(count) }
    },
  })
  await vi.advanceTimersByTimeAsync(20_000)
  expect(requests.length).toBeLessThan(20)
  await vi.advanceTimersByTimeAsync(180_000)
  expect(errors).toHaveLength(20)
  expect(claims).toHaveLength(1)
})

test('it does not claim while too many outcomes wait to be written', async () => {
  let makeRoom = () => {}
  const { requests } = await create({
    claim: async () => ({ jobs: [] }),
    room: (signal) =>
      new Promise((resolve) => {
        makeRoom = resolve
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve())
      }),
  })
  await vi.advanceTimersByTimeAsync(10_000)
  expect(requests).toHaveLength(0)
  makeRoom()
  await vi.advanceTimersByTimeAsync(1)
  expect(requests).toHaveLength(1)
})

test('to stop waits for the claim that is under way and hands its jobs over, but sends no other (B86)', async () => {
  let reply = (_: Claim) => {}
  const { loop, claims, requests } = await create({
    claim: () =>
      new Promise((resolve) => {
        reply = resolve
      }),
  })
  await vi.advanceTimersByTimeAsync(1)
  let stopped = false
  const stopping = loop.stop().then(() => {
    stopped = true
  })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(stopped).toBe(false)
  reply({ jobs: jobs(4) })
  await stopping
  expect(claims).toHaveLength(1)
  expect(requests).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('to stop while it waits, or is full, ends it at once', async () => {
  const idle = await create({ claim: async () => ({ jobs: [] }) })
  await vi.advanceTimersByTimeAsync(1)
  await idle.loop.stop()
  const full = await create({ claim: async ({ count }) => ({ jobs: jobs(count) }) })
  await vi.advanceTimersByTimeAsync(1)
  await full.loop.stop()
  expect(vi.getTimerCount()).toBe(0)
})
