import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Outcome } from '../../src/settle/outcome.js'
import { openStore, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'

const database = useSharedDatabase()

const FAILURE = { name: 'Error', message: 'm' }

const OUTCOMES: readonly Outcome[] = [
  { type: 'complete' },
  { type: 'retry', delayMs: 0, failure: FAILURE },
  { type: 'discard', failure: FAILURE },
]

const ROUNDS = 15
const BATCH = 120

test.each(OUTCOMES)('batches of the same jobs in opposite orders do not deadlock: $type (B54)', async (outcome) => {
  await using one = openStore(database.schema)
  await using other = openStore(database.schema)
  for (let round = 0; round < ROUNDS; round++) {
    const queue = database.queue()
    const ids = await queue.enqueueMany(BATCH)
    const claim = await queue.claim(BATCH)
    const settlements = claim.settlements(outcome)
    const answers = await Promise.all([
      one.store.settle(queue.name, settlements, [claim.leaseId]),
      other.store.settle(queue.name, [...settlements].reverse(), [claim.leaseId]),
    ])
    const accepted = answers.flatMap((each) => [...each])
    // Whoever was first with a job has settled it, and nobody else.
    expect(accepted.sort()).toEqual(ids.sort())
  }
  await expectSound(database)
})

test('different outcomes for the same jobs in opposite orders do not deadlock, and each job gets one (B54)', async () => {
  const stores = OUTCOMES.map(() => openStore(database.schema))
  for (let round = 0; round < ROUNDS; round++) {
    const queue = database.queue()
    const ids = await queue.enqueueMany(BATCH)
    const claim = await queue.claim(BATCH)
    const answers = await Promise.all(
      OUTCOMES.map((outcome, n) => {
        const settlements = claim.settlements(outcome)
        return stores[n]?.store.settle(queue.name, n === 1 ? settlements.reverse() : settlements, [])
      }),
    )
    expect(answers.flatMap((each) => [...(each ?? [])]).sort()).toEqual(ids.sort())
  }
  for (const each of stores) await each[Symbol.asyncDispose]()
})

test('settlements, heartbeats, reclaims, claims and enqueues of the same jobs go on beside each other (B54)', async () => {
  const queue = database.queue()
  await queue.enqueueMany(200, { maxAttempts: 50 })
  const errors: unknown[] = []
  let going = true
  const loop = async (step: (store: ReturnType<typeof openStore>['store']) => Promise<unknown>) => {
    await using open = openStore(database.schema)
    while (going) await step(open.store).catch((error) => errors.push(error))
  }
  const leases: string[] = [randomUUID()]
  const settle = async () => {
    for (let n = 0; n < 60; n++) {
      const claim = await queue.claim(10, { leaseMs: n % 3 === 0 ? -1 : 60_000 })
      leases.push(claim.leaseId)
      const outcomes: readonly Outcome[] = [{ type: 'complete' }, { type: 'release' }, ...OUTCOMES.slice(1)]
      const settlements = claim
        .settlements()
        .map((each, index) => ({ ...each, outcome: outcomes[index % 4] as Outcome }))
      await database.store.settle(queue.name, settlements.reverse(), [])
      await database.store.settle(queue.name, [], [claim.leaseId])
      await queue.enqueueMany(5, { maxAttempts: 50 })
    }
  }
  const loops = [
    loop((store) => store.extend(leases.slice(-6).reverse(), 60_000)),
    loop((store) => store.extend(leases.slice(-6), 60_000)),
    loop((store) => store.reclaim()),
    loop((store) => store.maintain()),
  ]
  await settle().finally(() => {
    going = false
  })
  await Promise.all(loops)
  expect(errors).toEqual([])
  await expectSound(database)
})
