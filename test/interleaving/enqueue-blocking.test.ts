import { expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { newJob } from '../support/factory.js'

const database = useSharedDatabase()

test('while a transaction that has enqueued for a tenant stays open, its other jobs are enqueued, claimed and settled (B50)', async () => {
  const queue = database.queue()
  const before = await queue.enqueueMany(2)
  const writer = await database.session()
  await writer.run('begin')
  const held = await database.store.enqueue([newJob({ queue: queue.name })], writer.client)

  const after = await queue.enqueueMany(2)
  const claim = await queue.claim(10)
  expect(claim.ids).toEqual([...before, ...after])
  expect(await database.store.extend([claim.leaseId], 60_000)).toEqual(new Set([claim.leaseId]))
  expect((await queue.settle(claim)).sort()).toEqual([...before, ...after].sort())
  const other = await database.session()
  await other.run('begin')
  expect(await database.store.enqueue([newJob({ queue: queue.name })], other.client)).toHaveLength(1)
  await other.run('rollback')

  await writer.run('commit')
  expect((await queue.claim(10)).ids).toEqual(held)
})

test('an enqueue does not wait for a claim that has not committed, nor for a settlement, nor they for it', async () => {
  const queue = database.queue()
  await queue.enqueueMany(3)
  const running = await queue.claim(1)
  const claimer = await database.session()
  await claimer.run('begin isolation level read committed')
  expect(await claimer.claim(queue.name, 1)).toHaveLength(1)
  const settler = await database.session()
  await settler.run('begin')
  expect(await database.store.completeIn(settler.client, queue.name, running.ids[0] ?? '', running.leaseId)).toBe(true)

  const ids = await queue.enqueueMany(2)
  expect(ids).toHaveLength(2)
  await claimer.run('commit')
  expect((await queue.claim(10)).ids).toHaveLength(3)
  await settler.run('commit')
  expect((await queue.record(running.ids[0])).state).toBe('completed')
})

test('locks on the rows of a tenant’s and a queue’s settings hold up neither enqueues nor claims nor settlements (B50)', async () => {
  const queue = database.queue()
  await database.admin.configureTenant(queue.name, 'acme', { weight: 2 })
  await database.admin.configureQueue(queue.name, { history: 'keep' })
  const operator = await database.session()
  await operator.run('begin')
  await operator.run('select from :schema.tenant where queue = $1 for update', [queue.name])
  await operator.run('select from :schema.queue where name = $1 for update', [queue.name])
  await operator.run('update :schema.tenant set weight = 5 where queue = $1', [queue.name])
  await operator.run(`update :schema.queue set history = 'none' where name = $1`, [queue.name])

  const [id] = await queue.enqueue({})
  const claim = await queue.claim(1)
  expect(claim.ids).toEqual([id])
  expect(await queue.settle(claim)).toEqual([id])
  // The settings count once they are committed.
  expect((await queue.record(id)).state).toBe('completed')
  await operator.run('commit')
})

test('open transactions that enqueue for one tenant do not wait for each other, and late commits of early ids lose nothing', async () => {
  const queue = database.queue()
  const writers = await Promise.all(Array.from({ length: 12 }, () => database.session()))
  const ids: string[] = []
  for (const writer of writers) await writer.run('begin')
  for (const writer of writers) {
    ids.push(
      ...(await database.store.enqueue([newJob({ queue: queue.name }), newJob({ queue: queue.name })], writer.client)),
    )
  }
  expect((await queue.claim(50)).ids).toEqual([])
  // The last to enqueue is the first to commit: ids say nothing about who is visible.
  const claimed: string[] = []
  for (const writer of writers.reverse()) {
    await writer.run('commit')
    claimed.push(...(await queue.claim(50)).ids)
  }
  expect(claimed.sort()).toEqual(ids.sort())
})
