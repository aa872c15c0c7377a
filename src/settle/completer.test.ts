import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemClock } from '../clock.js'
import type { Job } from '../job/job.js'
import { type HeldJob, HeldLeases } from '../lease/held-leases.js'
import { systemRandom } from '../random.js'
import { Completer, type CompleterListener, type SettleEvent } from './completer.js'
import type { Outcome, Settlement } from './outcome.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const complete: Outcome = { type: 'complete' }

interface Call {
  readonly queue: string
  readonly settlements: readonly Settlement[]
  readonly finishedLeases: readonly string[]
}

/** A completer whose statements are answered by the test. */
function create(answer: (call: Call) => Promise<Iterable<string>> | Iterable<string>, backlogMax?: number) {
  const calls: Call[] = []
  const events: string[] = []
  const flushes: SettleEvent[] = []
  const leases = new HeldLeases(30_000)
  const note = (what: string) => (held: HeldJob) => {
    leases.drop(held)
    events.push(`${what} ${held.job.id}`)
  }
  const listener: CompleterListener = {
    settled: note('settled'),
    lost: note('lost'),
    unconfirmed: note('unconfirmed'),
    refused: (held) => {
      held.lease.refuse()
      note('refused')(held)
    },
    flushed: (event) => flushes.push(event),
    failed: () => {},
    recovered: () => {},
  }
  const settle = async (queue: string, settlements: readonly Settlement[], finishedLeases: readonly string[]) => {
    const call = { queue, settlements, finishedLeases }
    calls.push(call)
    return new Set(await answer(call))
  }
  const completer = new Completer({
    store: { settle },
    clock: systemClock,
    random: systemRandom,
    listener,
    ...(backlogMax !== undefined && { backlogMax }),
  })
  const claim = (leaseId: string, ids: readonly string[], queue = 'q') => {
    const jobs = ids.map((id): Job => ({ ...blankJob, id, queue }))
    return [...leases.hold({ leaseId, queue, jobs, sentAtMs: 0 }).jobs]
  }
  return { completer, calls, events, flushes, leases, claim }
}

const blankJob: Job = {
  id: '',
  queue: '',
  kind: 'k',
  tenant: 't',
  payload: null,
  attempt: 1,
  maxAttempts: 5,
  priority: 0,
  runAt: new Date(0),
  createdAt: new Date(0),
  errors: [],
}

const acceptAll = ({ settlements }: Call) => settlements.map(({ jobId }) => jobId)
const idsOf = ({ settlements }: Call) => settlements.map(({ jobId }) => jobId)
const pgError = (code: string) => Object.assign(new Error(`SQLSTATE ${code}`), { code })

test('outcomes that come within a few milliseconds are written in one statement per queue', async () => {
  const { completer, calls, claim } = create(acceptAll)
  for (const held of claim('a', ['1', '2'])) completer.add(held, complete)
  for (const held of claim('b', ['3'], 'other')) completer.add(held, complete)
  expect(calls).toHaveLength(0)
  await vi.advanceTimersByTimeAsync(5)
  expect(calls.map((call) => [call.queue, idsOf(call)])).toEqual([
    ['q', ['1', '2']],
    ['other', ['3']],
  ])
  expect(completer.backlog).toBe(0)
})

test('while a statement is under way the next batch gathers', async () => {
  const replies: (() => void)[] = []
  const { completer, calls, claim } = create(async (call) => {
    await new Promise<void>((resolve) => replies.push(resolve))
    return acceptAll(call)
  })
  const jobs = claim('a', ['1', '2', '3'])
  for (const held of jobs) {
    completer.add(held, complete)
    await vi.advanceTimersByTimeAsync(10)
  }
  expect(calls.map(idsOf)).toEqual([['1']])
  replies.shift()?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(calls.map(idsOf)).toEqual([['1'], ['2', '3']])
})

test('a full batch is written at once, and no statement has more than 500 jobs', async () => {
  const { completer, calls, claim } = create(acceptAll)
  const ids = Array.from({ length: 1_200 }, (_, index) => String(index + 1))
  for (const held of claim('a', ids)) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(10)
  expect(calls.map((call) => call.settlements.length)).toEqual([500, 500, 200])
})

test('a job that the answer leaves out had lost its lease and is reported as that, never as success (B27)', async () => {
  const { completer, events, flushes, claim } = create((call) => idsOf(call).filter((id) => id !== '2'))
  for (const held of claim('a', ['1', '2', '3'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(5)
  expect(events).toEqual(['settled 1', 'lost 2', 'settled 3'])
  expect(flushes).toMatchObject([{ queue: 'q', asked: 3, accepted: 2, lost: 1, unconfirmed: 0 }])
})

test('a lease is named as finished with the last of its jobs and not earlier', async () => {
  const { completer, calls, claim } = create(acceptAll)
  const [first, second] = claim('a', ['1', '2'])
  if (first) completer.add(first, complete)
  await vi.advanceTimersByTimeAsync(5)
  if (second) completer.add(second, complete)
  await vi.advanceTimersByTimeAsync(5)
  expect(calls.map((call) => call.finishedLeases)).toEqual([[], ['a']])
})

test('a lease whose last job was completed elsewhere is still removed', async () => {
  const { completer, calls, leases, claim } = create(acceptAll)
  const [held] = claim('a', ['1'])
  if (!held) throw new Error('no job')
  leases.drop(held)
  completer.finishIfEmpty(held.lease)
  await vi.advanceTimersByTimeAsync(5)
  expect(calls).toEqual([{ queue: 'q', settlements: [], finishedLeases: ['a'] }])
})

test('a lease that is emptied while the statement about its last settlement is under way is removed with the next', async () => {
  const replies: (() => void)[] = []
  const { completer, calls, leases, claim } = create(async (call) => {
    if (replies.length === 0) await new Promise<void>((resolve) => replies.push(resolve))
    return acceptAll(call)
  })
  const [first, second] = claim('a', ['1', '2'])
  if (!first || !second) throw new Error('no jobs')
  completer.add(first, complete)
  await vi.advanceTimersByTimeAsync(5)
  leases.drop(second)
  completer.finishIfEmpty(second.lease)
  replies[0]?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(calls.map((call) => [idsOf(call), call.finishedLeases])).toEqual([
    [['1'], []],
    [[], ['a']],
  ])
})

test('a batch that is refused does not take the leases that were finished elsewhere with it', async () => {
  const { completer, calls, leases, claim } = create((call) => {
    if (idsOf(call).includes('2')) throw pgError('22003')
    return acceptAll(call)
  })
  const [elsewhere] = claim('a', ['1'])
  if (!elsewhere) throw new Error('no job')
  leases.drop(elsewhere)
  completer.finishIfEmpty(elsewhere.lease)
  for (const held of claim('b', ['2', '3'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(calls.filter((call) => !idsOf(call).includes('2')).flatMap((call) => call.finishedLeases)).toEqual(['a'])
})

test('an id stands at most once in a statement: its second settlement waits for the next', async () => {
  const { completer, calls, claim } = create(acceptAll)
  for (const held of claim('a', ['1'])) completer.add(held, complete)
  for (const held of claim('b', ['1', '2'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(20)
  const sent = calls.map((call) => call.settlements.map(({ jobId, leaseId }) => `${jobId}${leaseId}`))
  expect(sent).toEqual([['1a', '2b'], ['1b']])
})

test('failed statements are repeated until the database answers (B72)', async () => {
  let failures = 20
  const { completer, calls, events, claim } = create((call) => {
    failures -= 1
    if (failures >= 0) throw pgError('57P01')
    return acceptAll(call)
  })
  for (const held of claim('a', ['1'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(150_000)
  expect(calls).toHaveLength(21)
  expect(events).toEqual(['settled 1'])
})

test('a job that is gone when its outcome is sent again is not called lost: the first reply may have been (B04)', async () => {
  let replies = 0
  const { completer, events, flushes, claim } = create(() => {
    replies += 1
    if (replies === 1) throw pgError('08006')
    return []
  })
  for (const held of claim('a', ['1'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(events).toEqual(['unconfirmed 1'])
  expect(flushes).toMatchObject([{ accepted: 0, lost: 0, unconfirmed: 1 }])
})

test('outcomes of a lease that the database has called lost are not sent any more', async () => {
  let reachable = false
  const { completer, calls, events, leases, claim } = create((call) => {
    if (!reachable) throw pgError('57P01')
    return acceptAll(call)
  })
  for (const held of [...claim('a', ['1']), ...claim('b', ['2'])]) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(5)
  const lease = leases.get('a')
  if (lease) leases.lose(lease)
  reachable = true
  await vi.advanceTimersByTimeAsync(1_000)
  expect(calls.map(idsOf).at(-1)).toEqual(['2'])
  expect(events).toEqual(['unconfirmed 1', 'settled 2'])
})

test('a value that the database refuses does not hold up its neighbours (B38)', async () => {
  const { completer, events, calls, claim } = create((call) => {
    const poison = call.settlements.some(({ outcome }) => outcome.type === 'retry' && outcome.failure.message === 'bad')
    if (poison) throw Object.assign(new Error('wrapped'), { cause: pgError('22P05') })
    return acceptAll(call)
  })
  const ids = Array.from({ length: 51 }, (_, index) => String(index))
  for (const held of claim('a', ids)) {
    const failure = { name: 'Error', message: 'bad' }
    completer.add(held, held.job.id === '17' ? { type: 'retry', delayMs: 7, failure } : complete)
  }
  await vi.advanceTimersByTimeAsync(1_000)
  expect(events.filter((event) => event.startsWith('settled'))).toHaveLength(51)
  const stored = calls.flatMap((call) => call.settlements).findLast(({ jobId }) => jobId === '17')
  expect(stored?.outcome).toMatchObject({ type: 'retry', delayMs: 7 })
  expect(completer.backlog).toBe(0)
})

test('what is refused even as plain text is left to the expiry of its lease', async () => {
  const { completer, events, calls, claim } = create((call) => {
    if (idsOf(call).includes('2')) throw pgError('22003')
    return acceptAll(call)
  })
  for (const held of claim('a', ['1', '2', '3'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(1_000)
  expect([...events].sort()).toEqual(['refused 2', 'settled 1', 'settled 3'])
  expect(calls.at(-1)?.finishedLeases).toEqual([])
  expect(completer.backlog).toBe(0)
})

test('a row that somebody has locked holds up neither its neighbours nor what comes later, and is tried again', async () => {
  let locked = true
  const { completer, events, calls, claim } = create((call) => {
    if (locked && idsOf(call).includes('17')) throw pgError('55P03')
    return acceptAll(call)
  })
  const ids = Array.from({ length: 51 }, (_, index) => String(index))
  for (const held of claim('a', ids)) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(100)
  expect(events).toHaveLength(50)
  for (const held of claim('b', ['later'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(5)
  expect(events.at(-1)).toBe('settled later')
  expect(completer.backlog).toBe(1)
  await vi.advanceTimersByTimeAsync(60_000)
  locked = false
  await vi.advanceTimersByTimeAsync(20_000)
  expect(events.at(-1)).toBe('settled 17')
  expect(calls.at(-1)?.finishedLeases).toEqual(['a'])
  expect(completer.backlog).toBe(0)
})

test('to drain tries a locked row once more, and gives up when told so', async () => {
  const { completer, calls, claim } = create(() => {
    return new Promise((_, reject) => setTimeout(() => reject(pgError('55P03')), 3_000))
  })
  for (const held of claim('a', ['1'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(3_100)
  const giveUp = new AbortController()
  const drained = completer.drain(giveUp.signal)
  await vi.advanceTimersByTimeAsync(10)
  expect(calls).toHaveLength(2)
  giveUp.abort()
  expect(await drained).toBe(1)
  completer.stop()
  await vi.advanceTimersByTimeAsync(3_100)
  expect(calls).toHaveLength(2)
  expect(vi.getTimerCount()).toBe(0)
})

test('a broken constraint is taken for the fault of a job only when it stays broken', async () => {
  let failures = 2
  const { completer, events, claim } = create((call) => {
    failures -= 1
    if (failures >= 0) throw pgError('23514')
    return acceptAll(call)
  })
  for (const held of claim('a', ['1', '2'])) completer.add(held, complete)
  await vi.advanceTimersByTimeAsync(2_000)
  expect(events).toEqual(['settled 1', 'settled 2'])
})

test('there is room again when the backlog has been written', async () => {
  const replies: (() => void)[] = []
  const { completer, claim } = create(async (call) => {
    await new Promise<void>((resolve) => replies.push(resolve))
    return acceptAll(call)
  }, 2)
  for (const held of claim('a', ['1', '2'])) completer.add(held, complete)
  let room = false
  const waiting = completer.room(new AbortController().signal).then(() => {
    room = true
  })
  await vi.advanceTimersByTimeAsync(5)
  expect(room).toBe(false)
  replies.shift()?.()
  await waiting
  expect(completer.backlog).toBe(0)
})

test('to drain writes everything at once, and gives up when told so', async () => {
  const { completer, claim } = create(acceptAll)
  for (const held of claim('a', ['1', '2'])) completer.add(held, complete)
  expect(await completer.drain(new AbortController().signal)).toBe(0)
  const down = create(() => {
    throw pgError('57P01')
  })
  for (const held of down.claim('a', ['1', '2'])) down.completer.add(held, complete)
  const giveUp = new AbortController()
  const drained = down.completer.drain(giveUp.signal)
  await vi.advanceTimersByTimeAsync(5_000)
  giveUp.abort()
  expect(await drained).toBe(2)
  down.completer.stop()
  expect(vi.getTimerCount()).toBe(0)
})
