import { describe, expect, test } from 'vitest'
import { drain } from '../../src/operations/operations.js'
import { useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

test('a claim that waits for a change of the charge does not keep the passes that were counted before it', async () => {
  const limited = new LimitedQueue(database)
  const { queue } = limited
  await limited.set({ charge: 'time' })
  await queue.enqueueMany(60, { tenant: 'a' })
  await queue.enqueueMany(60, { tenant: 'b' })
  await queue.settle(await queue.claim(2))
  // An hour ahead, since its jobs ran for so long.
  await database.query(`update :schema.ring set pass = pass + 3600 where queue = $1 and tenant = 'a'`, [queue.name])
  // Its walk goes on.
  await database.query(
    `update :schema.walk set walk_at = case kind when '' then 'infinity' else '-infinity' end::timestamptz where queue = $1`,
    [queue.name],
  )
  const [operator, worker] = [await database.session(), await database.session()]
  await operator.run('begin')
  await operator.run(`select :schema.configure_queue($1, '{"charge": "jobs"}')`, [queue.name])
  const claim = worker.claim(queue.name, 1)
  await until(() => worker.isWaiting(), { until: 'the claim waits' })
  await operator.run('commit')
  await claim
  const jobs = await queue.claimAll(8)
  expect(jobs.slice(0, 40).filter(({ tenant }) => tenant === 'a').length).toBeGreaterThanOrEqual(16)
})

describe.each(['fair', 'fifo', 'round-robin'])('with the strategy %s', (strategy) => {
  test('a queue is not drained before the claims that were under way have ended', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.set({ strategy })
    await queue.enqueueMany(5)
    await queue.claim(1).then((claim) => queue.settle(claim))
    const worker = await database.session()
    await worker.run('begin')
    expect(await worker.claim(queue.name, 2)).toHaveLength(2)
    const looks: number[] = []
    const drained = drain(database.admin, queue.name, {
      onProgress: ({ running }) => looks.push(running),
      timeoutMs: 30_000,
    })
    await until(async () => looks.length > 0 || (await isAwaited()), { until: 'drain looks, or waits' })
    await worker.run('commit')
    await until(() => looks.some((running) => running === 2), { until: 'drain sees what was started' })
    await database.query(
      `select :schema.complete_v1($1, array_agg(id), array_agg(lease_id), '{}') from :schema.job where queue = $1 and state = 'running'`,
      [queue.name],
    )
    expect(await drained).toBe(true)
  })
})

async function isAwaited(): Promise<boolean> {
  return database.value(
    `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%await_claim%' and query like $1)`,
    [`%${database.schema.schema}%`],
  )
}

test('a limit counts what a claim has started that began before there was one, whatever the strategy', async () => {
  for (const strategy of ['fair', 'fifo', 'round-robin']) {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limited.set({ strategy })
    await queue.enqueueMany(10)
    const [before, after] = [await database.session(), await database.session()]
    await before.run('begin')
    expect(await before.claim(queue.name, 4)).toHaveLength(4)
    await limited.set({ concurrency: 5 })
    const claim = after.claim(queue.name, 5)
    await until(() => after.isWaiting(), { until: 'the claim waits' })
    await before.run('commit')
    expect(await claim).toHaveLength(1)
  }
})
