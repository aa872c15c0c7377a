import { expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { newJobs } from '../support/factory.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

/** The order within a tenant must hold for jobs that come when the claims have long passed their place in it. */

test('an urgent job is claimed next, however far the claims have come in the backlog of its tenant', async () => {
  const queue = database.queue()
  await queue.enqueueMany(300, { runAt: new Date('2024-01-01') })
  for (let n = 0; n < 5; n++) await queue.claim(20)
  const [urgent] = await queue.enqueue({ priority: 1_000, runAt: new Date('2020-01-01') })
  expect((await queue.claim(1)).ids).toEqual([urgent])
})

test('a released job is claimed next, since it keeps its place', async () => {
  const queue = database.queue()
  await queue.enqueueMany(300)
  const early = await queue.claim(2)
  for (let n = 0; n < 5; n++) await queue.claim(20)
  await queue.settle(early, { type: 'release' })
  expect((await queue.claim(2)).ids).toEqual(early.ids)
})

test('a job that becomes due is claimed next if its run_at is before everything that waits', async () => {
  const queue = database.queue()
  const [scheduled] = await queue.enqueue({ delayMs: 3_600_000 })
  await queue.enqueueMany(300)
  for (let n = 0; n < 5; n++) await queue.claim(20)
  await database.query(`update :schema.job set run_at = '2020-01-01', order_at = '2020-01-01' where id = $1`, [
    scheduled,
  ])
  expect((await queue.claim(1)).ids).toEqual([scheduled])
})

test('a job whose enqueue commits late is found while its tenant’s later jobs fill every claim', async () => {
  const queue = database.queue()
  const writer = await database.session()
  await queue.enqueueMany(50, { runAt: new Date('2024-01-01') })
  await queue.claim(10)
  await writer.run('begin')
  const late = newJobs(1, { queue: queue.name, runAt: new Date('2024-01-02') })
  const [id] = await database.store.enqueue(late, writer.client)
  await queue.enqueueMany(5_000, { runAt: new Date('2024-01-03') })
  for (let n = 0; n < 5; n++) await queue.claim(20)
  await writer.run('commit')
  await until(
    async () => {
      const claim = await queue.claim(4)
      expect(claim.ids).toHaveLength(4)
      return claim.ids.includes(id ?? '')
    },
    { until: 'the late job is claimed' },
  )
})

test('jobs with one run_at come in the order of their ids, also those of several statements', async () => {
  const queue = database.queue()
  const runAt = new Date('2024-01-01')
  const ids = [...(await queue.enqueueMany(3, { runAt })), ...(await queue.enqueueMany(3, { runAt }))]
  ids.push(...(await queue.enqueue({ runAt })))
  expect((await queue.claimAll(2)).map(({ id }) => id)).toEqual(ids)
})

test('jobs enqueued one after the other come in that order, whatever the size of the enqueues', async () => {
  const queue = database.queue()
  const ids: string[] = []
  for (const size of [1, 2_000, 1, 1, 700, 1]) ids.push(...(await queue.enqueueMany(size)))
  expect((await queue.claimAll(500)).map(({ id }) => id)).toEqual(ids)
})

test('an operator who moves a waiting job to the front by SQL has it claimed soon, under any load', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(5_000)
  for (let n = 0; n < 5; n++) await queue.claim(20)
  await database.query(`update :schema.job set order_at = '2020-01-01' where id = $1`, [ids[4_000]])
  await until(async () => (await queue.claim(4)).ids.includes(ids[4_000] ?? ''), { until: 'the moved job is claimed' })
})
