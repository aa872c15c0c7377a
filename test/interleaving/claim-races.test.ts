import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

async function lockJobs(ids: readonly (string | undefined)[]) {
  const operator = await database.session()
  await operator.run('begin')
  await operator.run('select from :schema.job where id = any ($1::bigint[]) for update', [ids])
  return operator
}

test('a job that was enqueued while a claim emptied its lane is found by the very next claim', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2)
  await queue.claim(1)
  const claimer = await database.session()
  await claimer.run('begin isolation level read committed')
  expect(await claimer.claim(queue.name, 5)).toHaveLength(1)
  // The ring still shows the lane as ready, so this leaves no signal.
  const [id] = await queue.enqueue({})
  await claimer.run('commit')
  expect((await queue.claim(5)).ids).toEqual([id])
})

test('and so it is while others have so much work that no claim comes up short', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2, { tenant: 'quiet' })
  await queue.claim(1)
  const claimer = await database.session()
  await claimer.run('begin isolation level read committed')
  expect(await claimer.claim(queue.name, 5)).toHaveLength(1)
  const [id] = await queue.enqueue({ tenant: 'quiet' })
  await claimer.run('commit')
  await queue.enqueueMany(10_000, { tenant: 'noisy' })
  const found = await until(
    async () => {
      const claim = await queue.claim(5)
      expect(claim.ids).toHaveLength(5)
      return claim.ids.includes(id ?? '')
    },
    { until: 'the walk has come by' },
  )
  expect(found).toBe(true)
})

test.each(STRATEGIES)(
  '%s: a claim waits for the one before it only as long as that takes, and gets the rest',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    const ids = await queue.enqueueMany(10)
    const first = await database.session()
    const second = await database.session()
    await first.run('begin isolation level read committed')
    const taken = await first.claim(queue.name, 4)
    const rest = second.claim(queue.name, 10)
    if (strategy === 'fifo') {
      // Side by side: the rows of the other are passed over.
      expect(await rest).toHaveLength(6)
      await first.run('commit')
    } else {
      await until(() => second.isWaiting(), { until: 'the second claim waits for the first' })
      await first.run('commit')
    }
    expect([...taken, ...(await rest)].sort()).toEqual(ids.sort())
  },
)

test.each(STRATEGIES)(
  '%s: jobs that somebody holds are passed over without waiting, the others are not',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    const held = await queue.enqueueMany(5, { tenant: 'held' })
    const free = await queue.enqueueMany(3, { tenant: 'free' })
    const [last] = await queue.enqueueMany(1, { tenant: 'held' })
    const operator = await lockJobs(held)
    expect((await queue.claimAll(2)).map(({ id }) => id).sort()).toEqual([...free, last].sort())
    expect((await queue.claim(5)).ids).toEqual([])
    await operator.run('commit')
    expect((await queue.claim(10)).ids.sort()).toEqual(held.sort())
    await expectSound(database)
  },
)

test('a tenant whose jobs were all held has its turn again once they are not, though others fill every claim', async () => {
  const queue = database.queue()
  const held = await queue.enqueueMany(3, { tenant: 'held' })
  await queue.enqueueMany(10_000, { tenant: 'noisy' })
  const operator = await lockJobs(held)
  for (let n = 0; n < 5; n++) expect((await queue.claim(4)).tenants).toEqual(Array(4).fill('noisy'))
  await operator.run('rollback')
  const claimed = new Set<string>()
  await until(
    async () => {
      for (const id of (await queue.claim(4)).ids) claimed.add(id)
      return held.every((id) => claimed.has(id))
    },
    { until: 'the three jobs are claimed' },
  )
})

test('a job that is being cancelled is not waited for, and is claimed if the cancellation is undone (B90)', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({})
  const canceller = await database.session()
  await canceller.run('begin')
  await canceller.run('delete from :schema.job where id = $1', [id])
  expect((await queue.claim(1)).ids).toEqual([])
  await canceller.run('rollback')
  expect((await queue.claim(1)).ids).toEqual([id])
})

test('a cancellation that meets a claim waits for it and then finds the job running (B90)', async () => {
  const queue = database.queue()
  const [id] = await queue.enqueue({})
  const claimer = await database.session()
  await claimer.run('begin isolation level read committed')
  expect(await claimer.claim(queue.name, 1)).toEqual([id])
  const cancelled = database.store.cancel(id ?? '', 'too late')
  await until(
    () =>
      database.value(
        `select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and query like '%cancelled%'`,
      ),
    { until: 'the cancellation waits for the row' },
  )
  await claimer.run('commit')
  expect(await cancelled).toBe(false)
  expect((await queue.record(id)).state).toBe('running')
})

test('a claim that is rolled back has taken nothing and charged nobody', async () => {
  const queue = database.queue()
  for (const tenant of ['a', 'b']) await queue.enqueueMany(10, { tenant })
  await queue.claim(2)
  const passes = 'select tenant, pass from :schema.ring where queue = $1 order by tenant'
  const before = await database.query(passes, [queue.name])
  const claimer = await database.session()
  await claimer.run('begin isolation level read committed')
  expect(await claimer.claim(queue.name, 7)).toHaveLength(7)
  await claimer.run('rollback')
  expect(await database.query(passes, [queue.name])).toEqual(before)
  expect((await queue.claimAll(5)).every(({ attempt }) => attempt === 1)).toBe(true)
})

test('an update of a waiting job that commits in between neither hides it nor doubles it', async () => {
  const queue = database.queue()
  const ids = await queue.enqueueMany(3)
  const operator = await database.session()
  await operator.run('begin')
  await operator.run('update :schema.job set priority = 5 where id = $1', [ids[1]])
  expect((await queue.claim(5)).ids).toEqual([ids[0], ids[2]])
  await operator.run('commit')
  expect((await queue.claim(5)).jobs).toMatchObject([{ id: ids[1], priority: 5, attempt: 1 }])
})
