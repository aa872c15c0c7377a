import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryStore } from '../../test/support/memory-store.js'
import { delay, systemClock } from '../clock.js'
import type { TransactionClient } from '../driver/transaction-client.js'
import { LeaseLostError, ShutdownError, TenantryError } from '../errors.js'
import { defineJob } from '../job/define-job.js'
import type { StandardSchema } from '../job/standard-schema.js'
import { type Logger, silentLogger } from '../logger.js'
import { systemRandom } from '../random.js'
import type { Claim, ClaimRequest, Store } from '../store/store.js'
import type { BatchContext } from './context.js'
import type { BatchJobResult } from './handlers.js'
import { resolveWorkerOptions, type WorkerOptions } from './options.js'
import { Worker, type WorkerDependencies } from './worker.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const advance = (ms: number) => vi.advanceTimersByTimeAsync(ms)
const never = () => new Promise<never>(() => {})
const job = defineJob({ kind: 'job', maxAttempts: 3, retry: { baseMs: 50, jitter: 'none' } })

/** A worker on a store in memory: its timers, its loops and its shutdown in virtual time. */
function setUp(
  options: WorkerOptions = {},
  replaced: Partial<WorkerDependencies> = {},
  store: MemoryStore = new MemoryStore(),
) {
  const calls = new Map<string, number>()
  const failures: { when: (call: string) => boolean; error: () => unknown }[] = []
  const counted = new Proxy<Store>(store, {
    get: (target, name: keyof Store) => {
      const method = target[name].bind(target) as (...values: unknown[]) => Promise<unknown>
      return async (...values: unknown[]) => {
        calls.set(name, (calls.get(name) ?? 0) + 1)
        // The real store reads the jobs along with the claim.
        if (name === 'claim' && !(values[0] as ClaimRequest).likelyEmpty)
          calls.set('read', (calls.get('read') ?? 0) + 1)
        const failure = failures.find(({ when }) => when(name))
        if (failure) throw failure.error()
        return method(...values)
      }
    },
  })
  const log: string[] = []
  const logger: Logger = {
    ...silentLogger,
    warn: (message) => log.push(message),
    error: (message) => log.push(message),
  }
  const events: string[] = []
  const worker = new Worker(
    resolveWorkerOptions({ observe: { leaseLost: ({ jobId }) => events.push(`lost ${jobId}`) }, ...options }),
    {
      claimStore: counted,
      settleStore: counted,
      numbersStore: { beat: async () => 0, record: async () => {}, leave: async () => {}, prune: async () => {} },
      transactions: { transaction: (work) => work({} as TransactionClient) },
      notifications: undefined,
      checkReady: async () => {},
      close: async () => {
        events.push('closed')
      },
      workerId: 'worker',
      log: logger,
      clock: systemClock,
      random: systemRandom,
      ...replaced,
    },
  )
  const enqueue = (count: number, payload: unknown = null, kind = 'job', maxAttempts = 3) =>
    store.enqueue(
      Array.from({ length: count }, () => ({
        queue: 'default',
        kind,
        tenant: 't',
        payload: JSON.stringify(payload),
        priority: 0,
        maxAttempts,
      })),
    )
  const statements = () => [...calls.values()].reduce((sum, count) => sum + count, 0)
  return { worker, store, calls, statements, failures, log, events, enqueue }
}

test('attempts that fail are logged, so that a worker that only fails is not silent', async () => {
  const { worker, log, enqueue } = setUp()
  worker.handle(job, async () => {
    throw new Error('no address')
  })
  await enqueue(1)
  await worker.start()
  await advance(30_000)
  await worker.stop()
  const retried = 'an attempt failed; the job is tried again'
  expect(log).toEqual([retried, retried, 'a job is discarded'])
})

test.each(['snooze', 'cancel', 'discard'] as const)(
  'an exit by context.%s() that is not returned fails the attempt, and says what to write',
  async (exit) => {
    const { worker, store, enqueue } = setUp()
    const batch = defineJob({ kind: 'batch' })
    const make = (context: BatchContext) => (exit === 'snooze' ? context.snooze(1_000) : context[exit]('no longer'))
    worker.handle(job, async (_, context) => {
      make(context)
    })
    worker.handleBatch(batch, { size: 2 }, async (_, context) => {
      make(context)
    })
    const ids = [...(await enqueue(1, null, 'job', 1)), ...(await enqueue(2, null, 'batch', 1))]
    await worker.start()
    await advance(1_000)
    await worker.stop()
    const records = await Promise.all(ids.map((id) => store.job(id)))
    for (const record of records) {
      expect(record?.state).toBe('discarded')
      expect(record?.errors[0]?.message).toBe(
        `context.${exit}() was called but not returned; write "return context.${exit}(…)"`,
      )
    }
  },
)

test('a worker that does not take the queue of a definition says so when it starts', async () => {
  const { worker, log } = setUp({ queue: 'default' })
  worker.handle(job, async () => {})
  worker.handle(defineJob({ kind: 'report', queue: 'elsewhere' }), async () => {})
  await worker.start()
  expect(log).toEqual([
    'kind "report" is enqueued to "elsewhere" by default, but this worker takes "default"; ' +
      'pass { queue: "elsewhere" } to tenantry.worker() unless its jobs are enqueued with another queue',
  ])
  await worker.stop()
})

test('a worker that is stopped before it has started does not say that it has stopped working', async () => {
  const lines: string[] = []
  const { worker } = setUp({}, { log: { ...silentLogger, info: (message) => lines.push(message) } })
  await worker.stop()
  expect(lines).toEqual(['the worker was stopped before it had started'])
})

test('jobs are claimed, run with at most the given concurrency, and completed', async () => {
  const { worker, store, enqueue } = setUp({ concurrency: 3 })
  let running = 0
  let most = 0
  worker.handle(job, async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setTimeout(resolve, 20))
    running -= 1
  })
  await enqueue(30)
  await worker.start()
  await advance(500)
  expect(store.count('completed')).toBe(30)
  expect(most).toBe(3)
  expect(store.leases).toBe(0)
  await worker.stop()
})

test('a failed attempt is retried with its error and discarded when its attempts are used up', async () => {
  const { worker, store, enqueue } = setUp()
  worker.handle(job, () => {
    throw new Error('no luck')
  })
  const [id = ''] = await enqueue(1)
  await worker.start()
  await advance(1_000)
  const record = await store.job(id)
  expect(record).toMatchObject({ state: 'discarded', attempt: 3 })
  expect(record?.errors.map(({ attempt, message }) => [attempt, message])).toEqual([
    [1, 'no luck'],
    [2, 'no luck'],
    [3, 'no luck'],
  ])
  await worker.stop()
})

test('planned exits are returned: snooze does not count the attempt, cancel and discard end the job', async () => {
  const { worker, store, enqueue } = setUp()
  const attempts: number[] = []
  worker.handle(job, (given, context) => {
    if (given.payload === 'cancel') return context.cancel('obsolete')
    if (given.payload === 'discard') return context.discard('malformed')
    attempts.push(given.attempt)
    return attempts.length < 3 ? context.snooze(100) : undefined
  })
  await enqueue(1, 'snooze')
  await enqueue(1, 'cancel')
  await enqueue(1, 'discard')
  await worker.start()
  await advance(2_000)
  expect(attempts).toEqual([1, 1, 1])
  expect(['completed', 'cancelled', 'discarded'].map((state) => store.count(state as 'completed'))).toEqual([1, 1, 1])
  await worker.stop()
})

const upperCase: StandardSchema<string, string> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'string' ? { value: value.toUpperCase() } : { issues: [{ message: 'expected a string' }] },
  },
}

test('the handler receives what the schema makes of the payload, and what it refuses is discarded unrun', async () => {
  const { worker, store, enqueue } = setUp()
  const seen: string[] = []
  worker.handle(defineJob({ kind: 'checked', payload: upperCase }), async (given) => {
    seen.push(given.payload)
  })
  await enqueue(1, 'abc', 'checked')
  const [refused = ''] = await enqueue(1, 42, 'checked')
  await worker.start()
  await advance(100)
  expect(seen).toEqual(['ABC'])
  const record = await store.job(refused)
  expect(record).toMatchObject({ state: 'discarded', attempt: 1 })
  expect(record?.errors[0]?.message).toContain('expected a string')
  await worker.stop()
})

test('whatever a handler throws or returns, its job is settled and the others run on (B39)', async () => {
  const { worker, store, enqueue } = setUp({ concurrency: 50 })
  const circular: { self?: unknown } = {}
  circular.self = circular
  const hostile = new Proxy({}, { get: () => raise(), has: () => raise(), getPrototypeOf: () => raise() })
  const thrown = [circular, undefined, null, 'text', 42n, Symbol('s'), Object.freeze(new Error('frozen')), hostile]
  const returned = [circular, 42n, new Map(), () => 1, 'x'.repeat(1_000_000), hostile]
  worker.handle(job, (({ payload }: { payload: { throws?: number; returns?: number } }) => {
    if (payload.throws !== undefined) throw thrown[payload.throws]
    return payload.returns === undefined ? undefined : returned[payload.returns]
  }) as never)
  for (const index of thrown.keys()) await enqueue(1, { throws: index }, 'job', 1)
  for (const index of returned.keys()) await enqueue(1, { returns: index }, 'job', 1)
  await enqueue(20, {})
  await worker.start()
  await advance(1_000)
  expect(store.count('discarded')).toBe(thrown.length + returned.length)
  expect(store.count('completed')).toBe(20)
  await worker.stop()
})

function raise(): never {
  throw new Error('trap')
}

test('a handler that runs longer than its timeoutMs is aborted and its attempt fails', async () => {
  const { worker, store, enqueue } = setUp()
  const reasons: unknown[] = []
  worker.handle(defineJob({ kind: 'slow', timeoutMs: 1_000 }), async (_, { signal }) => {
    await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))).catch(
      (error: unknown) => {
        reasons.push(signal.reason)
        throw error
      },
    )
  })
  const [id = ''] = await enqueue(1, null, 'slow', 1)
  await worker.start()
  await advance(1_100)
  const record = await store.job(id)
  expect(record?.state).toBe('discarded')
  expect(record?.errors[0]).toMatchObject({ name: 'HandlerTimeoutError' })
  expect(reasons).toMatchObject([{ code: 'HANDLER_TIMEOUT' }])
  await worker.stop()
})

test('a handler that never returns fails after its timeout and a grace, and its slot is used again', async () => {
  const { worker, store, enqueue, log } = setUp({ concurrency: 1 })
  worker.handle(defineJob({ kind: 'stuck', timeoutMs: 1_000 }), never)
  worker.handle(job, async () => {})
  await enqueue(1, null, 'stuck', 1)
  await enqueue(1)
  await worker.start()
  await advance(5_900)
  expect(store.count('completed')).toBe(0)
  await advance(500)
  expect(store.count('discarded')).toBe(1)
  expect(store.count('completed')).toBe(1)
  expect(log.join()).toContain('ignored its signal')
  await worker.stop()
})

test('a handler that ends long after its attempt was over changes nothing more', async () => {
  const { worker, store, calls, enqueue } = setUp({ concurrency: 1 })
  let end = () => {}
  worker.handle(
    defineJob({ kind: 'late', timeoutMs: 1_000, retry: { baseMs: 3_600_000, jitter: 'none' } }),
    async () => {
      await new Promise<void>((resolve) => {
        end = resolve
      })
    },
  )
  let running = 0
  let most = 0
  worker.handle(job, async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setTimeout(resolve, 50))
    running -= 1
  })
  const [id = ''] = await enqueue(1, null, 'late')
  await worker.start()
  await advance(6_100)
  const settles = calls.get('settle')
  end()
  await advance(100)
  expect(calls.get('settle')).toBe(settles)
  expect(await store.job(id)).toMatchObject({ state: 'available', attempt: 1 })
  await enqueue(5)
  await advance(5_000)
  expect(store.count('completed')).toBe(5)
  expect(most).toBe(1)
  await worker.stop()
})

/** A queue with a concurrency of one. */
class LimitedStore extends MemoryStore {
  override async claim(request: ClaimRequest): Promise<Claim> {
    if (this.count('running') > 0) return { jobs: [], heldBack: true }
    return { ...(await super.claim({ ...request, count: 1 })), heldBack: true }
  }
}

test('the next job starts once the slot of a limit is free, without a poll or a notification', async () => {
  const { worker, store, enqueue } = setUp({ pollMinMs: 60_000, concurrency: 8 }, {}, new LimitedStore())
  worker.handle(job, () => delay(100))
  await enqueue(10)
  await worker.start()
  await advance(2_000)
  expect(store.count('completed')).toBe(10)
  await worker.stop()
})

test('what this worker reclaims is claimed at once, without a poll or a notification', async () => {
  const { worker, store, enqueue } = setUp({ pollMinMs: 60_000, reclaimIntervalMs: 1_000 })
  worker.handle(job, async () => {})
  await enqueue(1)
  await store.claim({
    queue: 'default',
    leaseId: 'of a dead worker',
    workerId: 'dead',
    kinds: ['job'],
    count: 1,
    leaseMs: 5_000,
    listening: false,
  })
  await worker.start()
  await advance(6_100)
  expect(store.count('completed')).toBe(1)
  await worker.stop()
})

test('a lost lease aborts the handler, and what it returns then is not settled but reported (B27)', async () => {
  const { worker, store, enqueue, events, log } = setUp({ leaseMs: 3_000, reclaimIntervalMs: 3_600_000 })
  const reasons: unknown[] = []
  let release = () => {}
  worker.handle(job, async (given, { signal }) => {
    if (given.attempt > 1) return
    await new Promise<void>((resolve) => {
      release = resolve
    })
    reasons.push(signal.reason)
  })
  const [id = ''] = await enqueue(1, null, 'job', 2)
  await worker.start()
  await advance(100)
  for (const leaseId of store.leaseIds) store.expire(leaseId)
  await store.reclaim()
  await advance(1_500)
  expect(events).toEqual([`lost ${id}`])
  release()
  await advance(1_000)
  expect(reasons[0]).toBeInstanceOf(LeaseLostError)
  expect(events).toEqual([`lost ${id}`])
  expect(log.filter((line) => line.includes('lease of running jobs was lost'))).toHaveLength(1)
  expect(await store.job(id)).toMatchObject({ state: 'completed', attempt: 2 })
  await worker.stop()
})

test('no statement that fails, once or twenty times in a row, ends the work (B72)', async () => {
  for (const code of ['57P01', '40001', '40P01', '53300', '55P03', '57014', '08006', '42P01', 'ECONNREFUSED']) {
    for (const name of ['claim', 'extend', 'settle', 'reclaim', 'maintain']) {
      const { worker, store, enqueue, failures } = setUp({ leaseMs: 3_000 })
      let left = code === '57P01' ? 20 : 1
      failures.push({
        when: (call) => call === name && left > 0,
        error: () => {
          left -= 1
          return Object.assign(new Error(code), { code })
        },
      })
      worker.handle(job, () => new Promise((resolve) => setTimeout(resolve, 1_500)))
      await enqueue(4)
      await worker.start()
      for (let round = 0; round < 60 && (left > 0 || store.count('completed') < 4); round += 1) await advance(10_000)
      expect([code, name, store.count('completed')]).toEqual([code, name, 4])
      await worker.stop()
    }
  }
})

test('an idle worker with one queue costs the database less than one query a second (B101)', async () => {
  const { worker, calls, statements } = setUp()
  worker.handle(job, async () => {})
  await worker.start()
  await advance(10_000)
  const before = statements()
  await advance(600_000)
  // The listening connection adds its own heartbeat, one every 5 s.
  expect(statements() - before + 600 / 5).toBeLessThan(600)
  expect(calls.get('extend')).toBeUndefined()
  await worker.stop()
})

test('while notifications arrive an idle worker polls no more often for having many queues (B101)', async () => {
  const queues = Array.from({ length: 13 }, (_, index) => `queue-${index}`)
  const notifications = { subscribe: () => () => {}, connected: true }
  const { worker, calls } = setUp({ queues }, { notifications })
  worker.handle(job, async () => {})
  await worker.start()
  await advance(60_000)
  const before = calls.get('claim') ?? 0
  await advance(600_000)
  expect((calls.get('claim') ?? 0) - before).toBeLessThan(600)
  await worker.stop()
})

test('what is enqueued while nobody notifies is found by the poll', async () => {
  const { worker, store, enqueue } = setUp({ listen: false })
  worker.handle(job, async () => {})
  await worker.start()
  await advance(60_000)
  await enqueue(1)
  await advance(2_600)
  expect(store.count('completed')).toBe(1)
  await worker.stop()
})

test('a batch handler gets the jobs of a claim, at most size of them, and settles each by itself', async () => {
  const { worker, store, enqueue } = setUp({ concurrency: 10 })
  const sizes: number[] = []
  worker.handleBatch(job, { size: 4 }, async (batch, context) => {
    sizes.push(batch.length)
    const [first, second] = batch
    return new Map<string, BatchJobResult>([
      [first?.id ?? '', context.cancel('first')],
      [second?.id ?? '', new Error('second')],
    ])
  })
  await enqueue(10, null, 'job', 1)
  await worker.start()
  await advance(200)
  expect(sizes).toEqual([4, 4, 2])
  expect([store.count('cancelled'), store.count('discarded'), store.count('completed')]).toEqual([3, 3, 4])
  await worker.stop()
})

test('an unfilled batch waits for company up to waitMs, and is given back when the worker stops', async () => {
  const { worker, store, enqueue } = setUp()
  const sizes: number[] = []
  worker.handleBatch(job, { size: 4, waitMs: 1_000 }, async (batch) => {
    sizes.push(batch.length)
  })
  await enqueue(1)
  await worker.start()
  await advance(300)
  await enqueue(2)
  await advance(1_000)
  expect(sizes).toEqual([3])
  const [id = ''] = await enqueue(1)
  await advance(2_500)
  await enqueue(1)
  sizes.length = 0
  await advance(300)
  await worker.stop()
  expect(sizes).toEqual([])
  expect(store.count('available')).toBe(1)
  expect(await store.job(id)).toMatchObject({ state: 'completed' })
})

test('an exception in a batch handler fails every job of the batch', async () => {
  const { worker, store, enqueue } = setUp()
  worker.handleBatch(job, { size: 8 }, () => Promise.reject(new Error('all')))
  await enqueue(5, null, 'job', 1)
  await worker.start()
  await advance(200)
  expect(store.count('discarded')).toBe(5)
  await worker.stop()
})

test('to stop waits for running handlers, keeps their leases and claims nothing more (B85)', async () => {
  const { worker, store, enqueue, events } = setUp({ leaseMs: 3_000, concurrency: 5 })
  worker.handle(job, () => new Promise((resolve) => setTimeout(resolve, 15_000)))
  await enqueue(8)
  await worker.start()
  await advance(100)
  const stopping = worker.stop().then(() => events.push('stopped'))
  await advance(14_000)
  await store.reclaim()
  expect(events).toEqual([])
  await advance(2_000)
  await stopping
  expect(events).toEqual(['closed', 'stopped'])
  expect([store.count('completed'), store.count('available')]).toEqual([5, 3])
  expect(vi.getTimerCount()).toBe(0)
})

test('at the deadline handlers are aborted; their jobs go back and the attempt does not count (B87)', async () => {
  const { worker, store, enqueue } = setUp({ shutdownTimeoutMs: 2_000 })
  const reasons: unknown[] = []
  worker.handle(job, async ({ payload }, { signal }) => {
    if (payload === 'ignores') await never()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    reasons.push(signal.reason)
    if (payload === 'throws') throw signal.reason
  })
  const ids = [...(await enqueue(1, 'throws')), ...(await enqueue(1, 'ignores')), ...(await enqueue(1, 'completes'))]
  await worker.start()
  await advance(100)
  const stopping = worker.stop()
  await advance(2_600)
  await stopping
  expect(reasons.every((reason) => reason instanceof ShutdownError)).toBe(true)
  const records = await Promise.all(ids.map((id) => store.job(id)))
  expect(records.map((record) => [record?.state, record?.attempt])).toEqual([
    ['available', 0],
    ['available', 0],
    ['completed', 1],
  ])
})

test('stop may be called at any time and any number of times (B86)', async () => {
  const unstarted = setUp()
  await unstarted.worker.stop()
  await expect(unstarted.worker.start()).rejects.toThrow(/was stopped/)

  const starting = setUp({}, { checkReady: () => new Promise((resolve) => setTimeout(resolve, 1_000)) })
  starting.worker.handle(job, async () => {})
  const start = starting.worker.start()
  const stop = starting.worker.stop()
  await advance(1_000)
  await Promise.all([start, stop])
  expect(starting.statements()).toBe(0)
  expect(starting.worker.status().state).toBe('stopped')

  const atOnce = setUp()
  atOnce.worker.handle(job, async () => {})
  await Promise.all([atOnce.worker.start(), Promise.resolve().then(() => atOnce.worker.stop())])
  expect(vi.getTimerCount()).toBe(0)

  const refused = setUp({}, { close: () => Promise.reject(new Error('cannot close')) })
  refused.worker.handle(job, async () => {})
  await refused.worker.start()
  await refused.worker.stop()

  const twice = setUp()
  twice.worker.handle(job, async () => {})
  await twice.worker.start()
  await Promise.all([twice.worker.stop(), twice.worker.stop(), twice.worker.stop()])
  expect(twice.events).toEqual(['closed'])
  expect(twice.worker.status().state).toBe('stopped')
  expect(vi.getTimerCount()).toBe(0)
})

test('jobs of a claim that is answered during the stop are given back unrun (B86)', async () => {
  let answer = () => {}
  const { worker, store, enqueue } = setUp()
  const claim = store.claim.bind(store)
  store.claim = async (request) => {
    const claimed = await claim(request)
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return claimed
  }
  let runs = 0
  worker.handle(job, async () => {
    runs += 1
  })
  const [id = ''] = await enqueue(1)
  await worker.start()
  await advance(1)
  const stopping = worker.stop()
  answer()
  await stopping
  expect(runs).toBe(0)
  expect(await store.job(id)).toMatchObject({ state: 'available', attempt: 0 })
})

test('to stop inside handlers does not wait for those very handlers (B86)', async () => {
  const { worker, store, enqueue, events } = setUp()
  worker.handle(job, async ({ payload }) => {
    if (payload === 'other') await new Promise((resolve) => setTimeout(resolve, 500))
    else await worker.stop()
    events.push(`${payload} ended`)
  })
  await enqueue(2, 'stopping')
  await enqueue(1, 'other')
  await worker.start()
  await advance(400)
  expect(events).toEqual([])
  await advance(300)
  expect(events).toEqual(['other ended', 'stopping ended', 'stopping ended', 'closed'])
  expect(store.count('completed')).toBe(3)
  expect(worker.status().state).toBe('stopped')
})

test('to stop while the database is down ends in bounded time (B86)', async () => {
  const { worker, enqueue, failures } = setUp()
  worker.handle(job, () => new Promise((resolve) => setTimeout(resolve, 500)))
  await enqueue(3)
  await worker.start()
  await advance(100)
  failures.push({ when: () => true, error: () => Object.assign(new Error('down'), { code: 'ECONNREFUSED' }) })
  const stopping = worker.stop()
  await advance(6_000)
  await stopping
  expect(vi.getTimerCount()).toBe(0)
})

test('handlers that end during the drain may still have their outcome written after a database restart', async () => {
  const { worker, store, enqueue, failures } = setUp()
  worker.handle(job, () => new Promise((resolve) => setTimeout(resolve, 500)))
  await enqueue(3)
  await worker.start()
  await advance(100)
  failures.push({ when: () => true, error: () => Object.assign(new Error('down'), { code: '57P01' }) })
  const stopping = worker.stop()
  await advance(1_500)
  failures.length = 0
  await advance(3_000)
  await stopping
  expect(store.count('completed')).toBe(3)
})

test('a worker that cannot work does not start (B75)', async () => {
  const unmigrated = new TenantryError('MIGRATION_REQUIRED', 'run tenantry migrate')
  const { worker, events } = setUp({}, { checkReady: () => Promise.reject(unmigrated) })
  worker.handle(job, async () => {})
  await expect(worker.start()).rejects.toBe(unmigrated)
  expect(worker.status().state).toBe('stopped')
  expect(events).toEqual(['closed'])
  expect(vi.getTimerCount()).toBe(0)
})

test('a start waits a little for a database that is restarting, and no longer', async () => {
  let tries = 0
  const down = Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
  const back = setUp({}, { checkReady: () => (++tries < 4 ? Promise.reject(down) : Promise.resolve()) })
  back.worker.handle(job, async () => {})
  const started = back.worker.start()
  await advance(2_000)
  await started
  expect(back.worker.status().state).toBe('running')
  await back.worker.stop()

  const gone = setUp({}, { checkReady: () => Promise.reject(down) })
  gone.worker.handle(job, async () => {})
  const refused = gone.worker.start().catch((error: unknown) => error)
  await advance(11_000)
  expect(await refused).toBe(down)
})

test('a worker without a handler, and a handler after the start, are refused', async () => {
  const { worker } = setUp()
  await expect(worker.start()).rejects.toThrow(/no handler/)
  worker.handle(job, async () => {})
  await worker.start()
  expect(() => worker.handle(defineJob({ kind: 'late' }), async () => {})).toThrow(/after start/)
  await worker.stop()
})

test('a job is completed in the transaction of its handler and not settled again', async () => {
  const { worker, store, calls, enqueue } = setUp()
  worker.handle(job, async (_, context) => {
    await context.transaction(async () => {})
  })
  await enqueue(3)
  await worker.start()
  await advance(100)
  expect(store.count('completed')).toBe(3)
  expect(store.leases).toBe(0)
  expect(calls.get('completeIn')).toBe(3)
  await worker.stop()
})

test('runUntilSignal starts, stops at the first signal and leaves no listener', async () => {
  const host = new EventEmitter() as EventEmitter & { exit: (code: number) => void }
  const exits: number[] = []
  host.exit = (code) => exits.push(code)
  const { worker, store, enqueue } = setUp()
  worker.handle(job, () => new Promise((resolve) => setTimeout(resolve, 500)))
  await enqueue(1)
  const ended = worker.runUntilSignal(host)
  await advance(100)
  host.emit('SIGTERM')
  await advance(1_000)
  await ended
  expect(store.count('completed')).toBe(1)
  expect(exits).toEqual([])
  expect(host.eventNames()).toEqual([])
})

test('runUntilSignal rejects when the start does, and ends when somebody else stops the worker', async () => {
  const host = new EventEmitter() as EventEmitter & { exit: (code: number) => void }
  const { worker } = setUp()
  await expect(worker.runUntilSignal(host)).rejects.toThrow(/no handler/)
  const other = setUp()
  other.worker.handle(job, async () => {})
  const ended = other.worker.runUntilSignal(host)
  await advance(10)
  await other.worker.stop()
  await ended
  expect(host.eventNames()).toEqual([])
})

test('an observer that throws is logged and changes nothing', async () => {
  const claim = () => {
    throw new Error('observer')
  }
  const { worker, store, enqueue, log } = setUp({ observe: { claim, settle: claim } })
  worker.handle(job, async () => {})
  await enqueue(1)
  await worker.start()
  await advance(100)
  expect(store.count('completed')).toBe(1)
  expect(log.join()).toContain('observe threw')
  await worker.stop()
})
