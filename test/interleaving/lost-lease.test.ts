import { expect, test } from 'vitest'
import type { Outcome } from '../../src/settle/outcome.js'
import { type HeldClaim, type TestQueue, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'

const database = useSharedDatabase()

const FAILURE = { name: 'Error', message: 'of the former owner' }

const OUTCOMES: readonly Outcome[] = [
  { type: 'complete' },
  { type: 'retry', delayMs: 0, failure: FAILURE },
  { type: 'snooze', delayMs: 60_000 },
  { type: 'release' },
  { type: 'cancel', reason: 'of the former owner' },
  { type: 'discard', failure: FAILURE },
]

interface Handover {
  readonly queue: TestQueue
  readonly id: string
  /** Of the worker that lost the lease, and of the one that runs the job now. */
  readonly former: HeldClaim
  readonly present: HeldClaim
}

/** claim(A) → expire → reclaim → claim(B). */
async function handOver(options: { readonly history?: 'keep' | 'none' } = {}): Promise<Handover> {
  const queue = database.queue()
  await database.admin.configureQueue(queue.name, { history: options.history ?? 'keep' })
  const [id = ''] = await queue.enqueue({})
  const former = await queue.claim(1, { leaseMs: -1 })
  expect(await database.store.reclaim()).toMatchObject({ retried: 1 })
  await makeDue(queue)
  const present = await queue.claim(1)
  expect(present.jobs).toMatchObject([{ id, attempt: 2 }])
  return { queue, id, former, present }
}

async function makeDue(queue: TestQueue): Promise<void> {
  await database.query(
    `update :schema.job set run_at = now() - interval '1 second' where queue = $1 and state = 'scheduled'`,
    [queue.name],
  )
}

test.each(OUTCOMES)('a former owner cannot settle a job that runs elsewhere: $type (B27)', async (outcome) => {
  for (const history of ['keep', 'none'] as const) {
    const { queue, id, former, present } = await handOver({ history })
    expect(await queue.settle(former, outcome)).toEqual([])
    expect(await queue.record(id)).toMatchObject({ state: 'running', attempt: 2 })
    expect((await database.store.claimed(present.leaseId)).map((job) => job.id)).toEqual([id])
    expect((await database.store.claimed(present.leaseId))[0]?.errors).toMatchObject([{ name: 'LeaseExpired' }])
    expect(await queue.settle(present)).toEqual([id])
  }
  await expectSound(database)
})

test.each(OUTCOMES)('nor one that was reclaimed and still waits: $type (B27)', async (outcome) => {
  const queue = database.queue()
  const [id] = await queue.enqueue({})
  const former = await queue.claim(1, { leaseMs: -1 })
  await database.store.reclaim()
  expect(await queue.settle(former, outcome)).toEqual([])
  expect(await queue.record(id)).toMatchObject({ state: 'scheduled', attempt: 1 })
})

test.each(OUTCOMES)('nor one that another has finished: $type (B28)', async (outcome) => {
  const { queue, id, former, present } = await handOver()
  expect(await queue.settle(present)).toEqual([id])
  expect(await queue.settle(former, outcome)).toEqual([])
  expect(await queue.record(id)).toMatchObject({ state: 'completed', attempt: 2 })
  await expectSound(database)
})

test('a former owner cannot complete it in its own transaction either, whose writes it then undoes (B27)', async () => {
  const { queue, id, former, present } = await handOver()
  const session = await database.session()
  await session.run('begin')
  expect(await database.store.completeIn(session.client, queue.name, id, former.leaseId)).toBe(false)
  await session.run('rollback')
  expect(await database.store.completeIn(database.schema.pool, queue.name, id, present.leaseId)).toBe(true)
})

test('a former owner’s heartbeat does not keep the new owner’s lease, nor revive its own (B27)', async () => {
  const { former, present } = await handOver()
  expect(await database.store.extend([former.leaseId, present.leaseId], 60_000)).toEqual(new Set([present.leaseId]))
  expect(await database.query('select from :schema.lease where id = $1', [former.leaseId])).toEqual([])
})

test('a former owner that declares its lease finished takes nothing from the new owner', async () => {
  const { queue, id, former, present } = await handOver()
  expect(await database.store.settle(queue.name, [], [former.leaseId])).toEqual(new Set())
  expect(await database.store.extend([present.leaseId], 60_000)).toEqual(new Set([present.leaseId]))
  expect(await queue.settle(present)).toEqual([id])
})

test('both leases of one job may be settled one after the other: only the present one counts (B27)', async () => {
  for (const outcome of OUTCOMES) {
    const { queue, id, former, present } = await handOver()
    expect(await queue.settle(former, outcome)).toEqual([])
    expect(await queue.settle(present, outcome)).toEqual([id])
    expect(await queue.settle(present, outcome)).toEqual([])
  }
})

test('a batch of jobs some of which were lost settles the others, and says which were not (B27)', async () => {
  const { queue, id, former, present } = await handOver()
  await queue.enqueueMany(3)
  const own = await queue.claim(3)
  const settlements = [...own.settlements(), ...former.settlements()]
  for (const batch of [settlements, settlements.reverse()]) {
    const accepted = await database.store.settle(queue.name, batch, [])
    expect(accepted.has(id)).toBe(false)
  }
  const states = await Promise.all(own.ids.map(async (each) => (await queue.record(each)).state))
  expect(states).toEqual(['completed', 'completed', 'completed'])
  expect(await queue.settle(present)).toEqual([id])
})

test('a job that goes round ten owners is settled by the last one alone', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ maxAttempts: 20 })
  const claims: HeldClaim[] = []
  for (let n = 0; n < 10; n++) {
    await makeDue(queue)
    claims.push(await queue.claim(1, { leaseMs: n === 9 ? 60_000 : -1 }))
    await database.store.reclaim()
  }
  const accepted = await Promise.all(claims.map((claim) => queue.settle(claim)))
  expect(accepted).toEqual([...Array(9).fill([]), [id]])
  expect(await queue.record(id)).toMatchObject({ state: 'completed', attempt: 10 })
})
