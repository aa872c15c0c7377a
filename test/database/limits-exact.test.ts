import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Outcome } from '../../src/settle/outcome.js'
import { type HeldClaim, openStore, type Session, TestQueue, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { expectRingSound, LimitedQueue, LimitWatch } from '../support/limits.js'

const database = useSharedDatabase()

const CONNECTIONS = 8
const STEPS = 30
const TENANTS = ['a', 'b', 'c', 'd', 'e']
const KINDS = ['k1', 'k2', 'k3']
const KEYS = ['x', 'y', 'z']

const LIMITS = {
  queue: 14,
  tenants: { a: 1, b: 2, c: 3, d: 5, e: 5 },
  kinds: { k1: 6, k2: 9 },
  keys: { x: 1, y: 3, z: 1 },
}

/** Numbers from 0 to below `below`, the same in every run. */
function dice(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const FAILURE = { name: 'Error', message: 'no' }

const OUTCOMES: readonly Outcome[] = [
  { type: 'complete' },
  { type: 'complete' },
  { type: 'release' },
  { type: 'retry', delayMs: 5, failure: FAILURE },
  { type: 'retry', delayMs: 0, failure: FAILURE },
  { type: 'snooze', delayMs: 5 },
  { type: 'cancel', reason: 'no' },
  { type: 'discard', failure: FAILURE },
]

/** One connection that does at random what workers, crashes and operators do. */
class Hammer {
  readonly #roll: (below: number) => number
  readonly #queue: TestQueue
  readonly #limited: LimitedQueue
  readonly #session: Session
  readonly held: HeldClaim[] = []

  constructor(
    seed: number,
    { queue, limited, session }: { queue: TestQueue; limited: LimitedQueue; session: Session },
  ) {
    this.#roll = dice(seed)
    this.#queue = queue
    this.#limited = limited
    this.#session = session
  }

  async step(): Promise<void> {
    const doing = this.#roll(12)
    if (doing < 2) await this.#enqueue()
    else if (doing < 7) this.held.push(await this.#queue.claim(1 + this.#roll(20), { kinds: this.#kinds() }))
    else if (doing === 7) await this.#rollBack()
    else if (doing === 8) await this.#settleSlowly()
    else if (doing === 9) await this.#loseLease()
    else await this.#settle()
    if (this.held.length > 4) await this.#settle()
  }

  #kinds(): string[] {
    const first = this.#roll(KINDS.length)
    return KINDS.slice(first, first + 1 + this.#roll(KINDS.length))
  }

  async #enqueue(): Promise<void> {
    const key = KEYS[this.#roll(2 * KEYS.length)]
    const ids = await this.#queue.enqueueMany(1 + this.#roll(12), {
      tenant: TENANTS[this.#roll(TENANTS.length)] as string,
      kind: KINDS[this.#roll(KINDS.length)] as string,
      priority: this.#roll(3),
      maxAttempts: 100,
      ...(key !== undefined && { key }),
      ...(this.#roll(5) === 0 && { delayMs: 20 }),
    })
    if (this.#roll(4) === 0) await this.#queue.store.cancel(ids[0] ?? '', 'changed my mind')
  }

  #take(): HeldClaim | undefined {
    return this.held.splice(this.#roll(Math.max(1, this.held.length)), 1)[0]
  }

  async #settle(): Promise<void> {
    const claim = this.#take()
    if (!claim) return
    const settlements = claim.ids.map((jobId) => ({
      jobId,
      leaseId: claim.leaseId,
      outcome: OUTCOMES[this.#roll(OUTCOMES.length)] as Outcome,
    }))
    await this.#queue.store.settle(claim.queue, settlements, [claim.leaseId])
  }

  /** The lease runs out, and the worker comes too late afterwards. */
  async #loseLease(): Promise<void> {
    const claim = this.#take()
    if (!claim) return
    await this.#limited.reclaim([claim.leaseId])
    await this.#queue.settle(claim)
  }

  async #rollBack(): Promise<void> {
    await this.#session.run('begin isolation level read committed')
    await this.#session.claim(this.#limited.name, 1 + this.#roll(10), this.#kinds())
    await this.#session.run('rollback')
  }

  async #settleSlowly(): Promise<void> {
    const claim = this.#take()
    if (!claim) return
    await this.#session.run('begin')
    await this.#session.run('select :schema.complete_v1($1, $2, $3, $4)', [
      claim.queue,
      claim.ids,
      claim.ids.map(() => claim.leaseId),
      [],
    ])
    // Others go on meanwhile, and so does this worker.
    this.held.push(await this.#queue.claim(5, { kinds: this.#kinds() }))
    const isLost = this.#roll(3) === 0
    await this.#session.run(isLost ? 'rollback' : 'commit')
    if (isLost) this.held.push(claim)
    else await this.#queue.store.settle(claim.queue, [], [claim.leaseId])
  }
}

async function drain(limited: LimitedQueue, queue: TestQueue): Promise<void> {
  for (let round = 0; (await limited.left()) > 0; round += 1) {
    expect(round, 'jobs are left that no claim finds').toBeLessThan(2_000)
    await limited.makeDue()
    const claim = await queue.claim(50, { kinds: KINDS })
    await queue.settle(claim)
  }
}

async function limit(limited: LimitedQueue): Promise<void> {
  await limited.set({ concurrency: LIMITS.queue, tenant_concurrency: 5 })
  for (const tenant of ['a', 'b', 'c'] as const) {
    await limited.setTenant(tenant, { concurrency: LIMITS.tenants[tenant] })
  }
  for (const [kind, concurrency] of Object.entries(LIMITS.kinds)) await limited.setKind(kind, { concurrency })
  await limited.setKey('y', { concurrency: LIMITS.keys.y })
}

test.each([1, 2])(
  'no limit is ever exceeded, and none drifts, whatever eight connections do (B02, B06, B07), %i',
  async (seed) => {
    const limited = new LimitedQueue(database)
    await limit(limited)
    for (const tenant of TENANTS) {
      for (const kind of KINDS) await limited.queue.enqueueMany(20, { tenant, kind, maxAttempts: 100 })
      await limited.queue.enqueueMany(10, { tenant, kind: 'k1', key: 'x', maxAttempts: 100 })
    }
    await using watch = new LimitWatch(await database.session(), limited.name, LIMITS)
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, nth) => hammer(limited, seed * 100 + nth)))
    expect(await watch.stop()).toBeGreaterThan(50)
    expect(watch.breaches).toEqual([])
    expect(watch.most, 'the most that ran at once: the limits are reached').toBe(LIMITS.queue)
    await expectSound(database)
    await expectRingSound(database, limited.name)

    await drain(limited, limited.queue)
    await expectParallelism(limited)
  },
)

test.each(['fifo', 'round-robin'])(
  'limits of the queue and of keys hold in a %s queue too (B02, B06, B07)',
  async (strategy) => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy, concurrency: LIMITS.queue })
    await limited.setKey('y', { concurrency: LIMITS.keys.y })
    for (const key of KEYS) await limited.queue.enqueueMany(30, { kind: 'k1', key, maxAttempts: 100 })
    await limited.queue.enqueueMany(60, { kind: 'k2', maxAttempts: 100 })
    await using watch = new LimitWatch(await database.session(), limited.name, {
      queue: LIMITS.queue,
      keys: LIMITS.keys,
    })
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, nth) => hammer(limited, 300 + nth)))
    await watch.stop()
    expect(watch.breaches).toEqual([])
    expect(watch.most).toBe(LIMITS.queue)
    await expectSound(database)
    await drain(limited, limited.queue)
  },
)

async function hammer(limited: LimitedQueue, seed: number): Promise<void> {
  await using open = openStore(database.schema)
  const queue = new TestQueue(open.store, limited.name)
  const one = new Hammer(seed, { queue, limited, session: await database.session() })
  for (let n = 0; n < STEPS; n += 1) await one.step()
  for (const claim of one.held) await queue.settle(claim)
}

/** Exactly the limit of each tenant, of each kind and of the queue runs when enough waits of it. */
async function expectParallelism(limited: LimitedQueue): Promise<void> {
  const { queue } = limited
  const held: HeldClaim[] = []
  for (const tenant of TENANTS) await queue.enqueueMany(20, { tenant, kind: 'k3' })
  for (let n = 0; n < 6; n += 1) held.push(await queue.claim(10, { kinds: KINDS }))
  expect(await limited.running('queue')).toEqual({ [limited.name]: LIMITS.queue })
  await limited.set({ concurrency: null })
  for (let n = 0; n < 4; n += 1) held.push(await queue.claim(10, { kinds: KINDS }))
  expect(await limited.running('tenant')).toEqual(LIMITS.tenants)
  for (const claim of held) await queue.settle(claim)
  await queue.enqueueMany(200, { tenant: 'a', kind: 'k1' })
  await limited.setTenant('a', { concurrency: 1_000_000 })
  expect((await queue.claim(100, { kinds: KINDS, leaseId: randomUUID() })).jobs).not.toHaveLength(100)
  expect((await limited.running('kind'))['k1']).toBe(LIMITS.kinds.k1)
}
