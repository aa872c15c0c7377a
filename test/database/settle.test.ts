import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { ERRORS_KEPT } from '../../src/limits.js'
import type { Outcome } from '../../src/settle/outcome.js'
import { useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'

const database = useSharedDatabase()

const FAILURE = { name: 'TypeError', message: 'it broke', stack: 'TypeError: it broke\n    at handler' }

const OUTCOMES: readonly Outcome[] = [
  { type: 'complete' },
  { type: 'retry', delayMs: 60_000, failure: FAILURE },
  { type: 'snooze', delayMs: 60_000 },
  { type: 'release' },
  { type: 'cancel', reason: 'obsolete' },
  { type: 'discard', failure: FAILURE },
]

test('every outcome leaves the job as it says, and the neighbours of the batch as they say', async () => {
  const queue = database.queue()
  const runAt = new Date('2020-01-01T00:00:00Z')
  const ids = await queue.enqueue(...OUTCOMES.map((_, n) => ({ runAt, priority: 2, payload: `${n}` })))
  const claim = await queue.claim(6)
  const [untouched] = await queue.enqueue({ tenant: 'other' })
  const settlements = OUTCOMES.map((outcome, n) => ({ jobId: ids[n] ?? '', leaseId: claim.leaseId, outcome }))
  expect(await database.store.settle(queue.name, settlements, [claim.leaseId])).toEqual(new Set(ids))

  const records = await Promise.all(ids.map((id) => queue.record(id)))
  expect(records.map(({ state, attempt }) => ({ state, attempt }))).toEqual([
    { state: 'completed', attempt: 1 },
    { state: 'scheduled', attempt: 1 },
    { state: 'scheduled', attempt: 0 },
    { state: 'available', attempt: 0 },
    { state: 'cancelled', attempt: 1 },
    { state: 'discarded', attempt: 1 },
  ])
  expect(records.map(({ errors }) => errors.map(({ name, message, attempt }) => [attempt, name, message]))).toEqual([
    [],
    [[1, 'TypeError', 'it broke']],
    [],
    [],
    [[1, 'Cancelled', 'obsolete']],
    [[1, 'TypeError', 'it broke']],
  ])
  expect(records.map(({ payload }) => payload)).toEqual([0, 1, 2, 3, 4, 5])
  expect(records.map((record) => record.finalizedAt !== undefined)).toEqual([true, false, false, false, true, true])
  expect(records[1]?.errors[0]?.stack).toBe(FAILURE.stack)
  expect(await queue.record(untouched)).toMatchObject({ state: 'available', attempt: 0 })
  expect(await database.query('select from :schema.lease where id = $1', [claim.leaseId])).toEqual([])
  await expectSound(database)
})

test('a retried or snoozed job is due after its delay, its place follows from that, a released one keeps its place', async () => {
  const queue = database.queue()
  const runAt = new Date('2020-01-01T00:00:00Z')
  const ids = await queue.enqueue({ runAt, priority: 3 }, { runAt, priority: 3 }, { runAt, priority: 3 })
  const claim = await queue.claim(3)
  const outcomes: Outcome[] = [
    { type: 'retry', delayMs: 90_000, failure: FAILURE },
    { type: 'snooze', delayMs: 90_000 },
    { type: 'release' },
  ]
  await database.store.settle(
    queue.name,
    outcomes.map((outcome, n) => ({ jobId: ids[n] ?? '', leaseId: claim.leaseId, outcome })),
    [claim.leaseId],
  )
  const rows = await database.query(
    `select id::text, order_at - run_at between interval '-3 minutes' and interval '-3 minutes' + interval '1 millisecond' as ordered, run_at > now() + interval '80 seconds' as later,
            run_at <= clock_timestamp() + interval '90 seconds' as bounded, lease_id
     from :schema.job where queue = $1 order by job.id`,
    [queue.name],
  )
  expect(rows).toEqual([
    { id: ids[0], ordered: true, later: true, bounded: true, lease_id: null },
    { id: ids[1], ordered: true, later: true, bounded: true, lease_id: null },
    { id: ids[2], ordered: true, later: false, bounded: true, lease_id: null },
  ])
})

test('a retry or snooze without delay is available at once, behind what was due before it', async () => {
  const queue = database.queue()
  const [first] = await queue.enqueue({})
  const [second] = await queue.enqueue({})
  const claim = await queue.claim(1)
  expect(await queue.settle(claim, { type: 'retry', delayMs: 0, failure: FAILURE })).toEqual([first])
  expect((await queue.claimAll(1)).map(({ id, attempt }) => [id, attempt])).toEqual([
    [second, 1],
    [first, 2],
  ])
})

test('an attempt counts when it fails and not when it is snoozed or released, so a job has as many as it was given', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ maxAttempts: 3 })
  const attempts: number[] = []
  for (const type of ['release', 'retry', 'snooze', 'release', 'retry', 'snooze', 'snooze'] as const) {
    const claim = await queue.claim(1)
    attempts.push(claim.jobs[0]?.attempt ?? 0)
    const outcome: Outcome =
      type === 'release' ? { type } : type === 'snooze' ? { type, delayMs: 0 } : { type, delayMs: 0, failure: FAILURE }
    await queue.settle(claim, outcome)
  }
  expect(attempts).toEqual([1, 1, 2, 2, 2, 3, 3])
  const last = await queue.claim(1)
  expect(last.jobs).toMatchObject([{ id, attempt: 3, maxAttempts: 3 }])
  expect(last.jobs[0]?.errors.map(({ attempt }) => attempt)).toEqual([1, 2])
})

test('a released job is found again at once although its lane had gone idle meanwhile', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ tenant: 'quiet' })
  const claim = await queue.claim(1)
  expect((await queue.claim(1)).jobs).toEqual([])
  await queue.enqueueMany(1_000, { tenant: 'noisy' })
  await queue.settle(claim, { type: 'release' })
  expect((await queue.claim(4)).ids).toContain(id)
})

test('the newest errors are kept, and no more of them than the limit', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({ maxAttempts: 100 })
  for (let n = 1; n <= ERRORS_KEPT + 5; n++) {
    const failure = { name: 'Error', message: `failure ${n}` }
    await queue.settle(await queue.claim(1), { type: 'retry', delayMs: 0, failure })
  }
  const { errors } = await queue.record(id)
  expect(errors.map(({ message }) => message)).toEqual(
    Array.from({ length: ERRORS_KEPT }, (_, n) => `failure ${n + 6}`),
  )
  expect(errors.map(({ attempt }) => attempt)).toEqual(Array.from({ length: ERRORS_KEPT }, (_, n) => n + 6))
  expect(errors.every(({ at }) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(at))).toBe(true)
})

test.each([31, 32, 53, 64, 999])(
  'attempt %i of 1,000 is stored, counted and retried like any other (B40)',
  async (attempt) => {
    const queue = database.queue()
    const [id] = await queue.enqueue({ maxAttempts: 1_000 })
    await database.query('update :schema.job set attempt = $2 where id = $1', [id, attempt - 1])
    const claim = await queue.claim(1)
    expect(claim.jobs).toMatchObject([{ id, attempt }])
    expect(await queue.settle(claim, { type: 'retry', delayMs: 300_000, failure: FAILURE })).toEqual([id])
    expect(await queue.record(id)).toMatchObject({ state: 'scheduled', attempt })
  },
)

test('a delay of ten years is stored', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({})
  await queue.settle(await queue.claim(1), { type: 'snooze', delayMs: 315_360_000_000 })
  expect(Number((await queue.record(id)).runAt)).toBeGreaterThan(Date.now() + 315_000_000_000)
})

test('a job that nobody claimed, that is finished, or that never existed cannot be settled', async () => {
  const queue = database.queue()
  const [waiting] = await queue.enqueue({ tenant: 'b' })
  const [done] = await queue.enqueue({ tenant: 'a' })
  const claim = await queue.claim(2)
  await queue.settle(claim, { type: 'release' })
  const again = await queue.claim(2)
  const finished = again.settlements().filter(({ jobId }) => jobId === done)
  await database.store.settle(queue.name, finished, [])
  await database.store.settle(
    queue.name,
    [{ jobId: waiting ?? '', leaseId: again.leaseId, outcome: { type: 'release' } }],
    [],
  )
  for (const outcome of OUTCOMES) {
    for (const leaseId of [again.leaseId, claim.leaseId, randomUUID()]) {
      const settlements = [waiting, done, '987654321987'].map((jobId) => ({ jobId: jobId ?? '', leaseId, outcome }))
      expect(await database.store.settle(queue.name, settlements, [])).toEqual(new Set())
    }
  }
  expect(await queue.record(waiting)).toMatchObject({ state: 'available', attempt: 0, errors: [] })
  expect(await queue.record(done)).toMatchObject({ state: 'completed', attempt: 1, errors: [] })
})

test('settling nothing but a finished lease removes it, and settling nothing at all does nothing', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const claim = await queue.claim(1)
  expect(await database.store.settle(queue.name, claim.settlements(), [])).toEqual(new Set(claim.ids))
  expect(await database.query('select from :schema.lease where id = $1', [claim.leaseId])).toHaveLength(1)
  expect(await database.store.settle(queue.name, [], [claim.leaseId])).toEqual(new Set())
  expect(await database.query('select from :schema.lease where id = $1', [claim.leaseId])).toEqual([])
  expect(await database.store.settle(queue.name, [], [])).toEqual(new Set())
})

test('a batch of 500 of all outcomes is settled as a whole', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(500)
  const claims = [await queue.claim(250), await queue.claim(250)]
  const settlements = claims
    .flatMap((claim) => claim.settlements())
    .map((settlement, n) => ({ ...settlement, outcome: OUTCOMES[n % OUTCOMES.length] as Outcome }))
    .reverse()
  const accepted = await database.store.settle(
    queue.name,
    settlements,
    claims.map(({ leaseId }) => leaseId),
  )
  expect(accepted).toEqual(new Set(ids))
  const running = `select count(*)::int from :schema.job where queue = $1 and state = 'running'`
  expect(await database.value(running, [queue.name])).toBe(0)
  await expectSound(database)
})

test('a job is completed together with the caller’s writes, or not at all', async () => {
  const queue = database.queue()
  const [kept, undone] = await queue.enqueueMany(2)
  const claim = await queue.claim(2)
  await database.query('create table :schema.effect (job text)')
  for (const [id, end] of [
    [kept, 'commit'],
    [undone, 'rollback'],
  ]) {
    const session = await database.session()
    await session.run('begin')
    await session.run('insert into :schema.effect values ($1)', [id])
    expect(await database.store.completeIn(session.client, queue.name, id ?? '', claim.leaseId)).toBe(true)
    // The same again in the same transaction: it is gone already.
    expect(await database.store.completeIn(session.client, queue.name, id ?? '', claim.leaseId)).toBe(false)
    await session.run(end as string)
  }
  expect(await database.query('select job from :schema.effect')).toEqual([{ job: kept }])
  expect((await queue.record(kept)).state).toBe('completed')
  expect((await queue.record(undone)).state).toBe('running')
})
