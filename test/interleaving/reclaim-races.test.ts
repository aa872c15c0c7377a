import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

const EXPIRED = { leaseMs: -1 }

test('a job whose settling is under way is left to it, and counts as settled when that commits (B28)', async () => {
  const queue = database.queue()
  const [id = '', other] = await queue.enqueueMany(2)
  const claim = await queue.claim(2, EXPIRED)
  const handler = await database.session()
  await handler.run('begin')
  expect(await database.store.completeIn(handler.client, queue.name, id, claim.leaseId)).toBe(true)
  expect(await database.store.reclaim()).toMatchObject({ retried: 1, discarded: 0 })
  expect((await queue.record(other)).state).toBe('scheduled')
  await handler.run('commit')
  expect((await queue.record(id)).state).toBe('completed')
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  await expectSound(database)
})

test('and is reclaimed by the next call when that is rolled back (B28)', async () => {
  const queue = database.queue()
  const [id = ''] = await queue.enqueue({})
  const claim = await queue.claim(1, EXPIRED)
  const handler = await database.session()
  await handler.run('begin')
  expect(await database.store.completeIn(handler.client, queue.name, id, claim.leaseId)).toBe(true)
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  await handler.run('rollback')
  await expectSound(database)
  expect(await database.store.reclaim()).toMatchObject({ retried: 1 })
})

test('a settlement that meets a reclaim waits for it and then has lost its lease', async () => {
  const queue = database.queue()
  await queue.enqueueMany(2)
  const claim = await queue.claim(2, EXPIRED)
  const reclaimer = await database.session()
  await reclaimer.run('begin')
  await reclaimer.run('select * from :schema.reclaim_v1(100)')
  const settler = await database.session()
  const completed = database.store.completeIn(settler.client, queue.name, claim.ids[0] ?? '', claim.leaseId)
  await until(() => settler.isWaiting(), { until: 'the settlement waits for the row' })
  await reclaimer.run('commit')
  expect(await completed).toBe(false)
  expect((await queue.record(claim.ids[0])).state).toBe('scheduled')
})

test('a heartbeat that meets a reclaim waits for it and then finds its lease gone', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const claim = await queue.claim(1, EXPIRED)
  const reclaimer = await database.session()
  await reclaimer.run('begin')
  await reclaimer.run('select * from :schema.reclaim_v1(100)')
  const extended = database.store.extend([claim.leaseId], 60_000)
  await until(
    () =>
      database.value(
        `select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and query like '%extend_v1%'`,
      ),
    { until: 'the heartbeat waits for the row' },
  )
  await reclaimer.run('commit')
  expect(await extended).toEqual(new Set())
})

test('a reclaim passes over a lease that is being extended at this moment (B34)', async () => {
  const queue = database.queue()
  await queue.enqueue({})
  const claim = await queue.claim(1, EXPIRED)
  const beat = await database.session()
  await beat.run('begin')
  await beat.run('select :schema.extend_v1(array[$1::uuid], 60000)', [claim.leaseId])
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  await beat.run('commit')
  expect(await database.store.reclaim()).toMatchObject({ retried: 0, discarded: 0 })
  expect(await queue.settle(claim)).toEqual(claim.ids)
})

test('no job changes its state again once it has finished, with reclaimers and settlements at the same leases (B28)', async () => {
  const { name } = database.queue()
  const ids = await database.queue(name).enqueueMany(300, { maxAttempts: 2 })
  const completed: string[] = []
  const counts = { retried: 0, discarded: 0 }
  let settling = true
  const settle = async () => {
    await using open = openStore(database.schema)
    const queue = new TestQueue(open.store, name)
    for (;;) {
      const claim = await queue.claim(7, EXPIRED)
      if (claim.ids.length === 0) return
      completed.push(...(await queue.settle(claim)))
    }
  }
  const reclaim = async () => {
    await using open = openStore(database.schema)
    while (settling) {
      const { retried, discarded } = await open.store.reclaim()
      counts.retried += retried
      counts.discarded += discarded
      await database.query(
        `update :schema.job set run_at = now()
         where id = any (array(select id from :schema.job where state = 'scheduled' for update skip locked))`,
      )
    }
  }
  const reclaimers = [reclaim(), reclaim(), reclaim()]
  await Promise.all([settle(), settle(), settle()]).finally(() => {
    settling = false
  })
  await Promise.all(reclaimers)

  const finished = await database.query<{ id: string; state: string }>(
    'select id::text, state from :schema.job_history where queue = $1',
    [name],
  )
  const waiting = await database.query('select id from :schema.job where queue = $1', [name])
  expect(new Set(completed).size).toBe(completed.length)
  expect(
    finished
      .filter(({ state }) => state === 'completed')
      .map(({ id }) => id)
      .sort(),
  ).toEqual(completed.sort())
  expect(finished.filter(({ state }) => state === 'discarded')).toHaveLength(counts.discarded)
  expect(finished.length + waiting.length).toBe(ids.length)
  await expectSound(database)
})
