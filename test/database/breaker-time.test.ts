import { describe, expect, test } from 'vitest'
import type { Job } from '../../src/job/job.js'
import { type TestQueue, useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

async function timed(): Promise<{ readonly limited: LimitedQueue; readonly queue: TestQueue }> {
  const limited = new LimitedQueue(database)
  await limited.set({ charge: 'time' })
  return { limited, queue: limited.queue }
}

/** As if what runs had been claimed so many seconds earlier. */
async function runFor(queue: TestQueue, seconds: number): Promise<void> {
  await database.query(
    `update :schema.job set claimed_at = claimed_at - $2 * interval '1 second' where queue = $1 and state = 'running'`,
    [queue.name, seconds],
  )
}

/** What the queue learned of a tenant: as if its jobs had taken so long before. */
async function learn(queue: TestQueue, tenant: string, seconds: number): Promise<void> {
  await database.query(`update :schema.ring set seconds = $3 where queue = $1 and tenant = $2`, [
    queue.name,
    tenant,
    seconds,
  ])
}

function jobsOf(jobs: readonly Job[], tenant: string): number {
  return jobs.filter((job) => job.tenant === tenant).length
}

/** Who gets the next starts, one by one, of jobs that take a second each. */
async function next(queue: TestQueue, starts: number): Promise<Job[]> {
  const jobs: Job[] = []
  for (let n = 0; n < starts; n += 1) {
    const claim = await queue.claim(1)
    await runFor(queue, 1)
    await queue.settle(claim)
    jobs.push(...claim.jobs)
  }
  return jobs
}

describe('what a job took beyond its charge', () => {
  test('is not taken for jobs where jobs are charged by then', async () => {
    const { limited, queue } = await timed()
    await queue.enqueueMany(60, { tenant: 'a' })
    await queue.enqueueMany(60, { tenant: 'b' })
    const claim = await queue.claim(1)
    await runFor(queue, 3_600)
    await queue.settle(claim)
    await limited.set({ charge: 'jobs' })
    const jobs = await queue.claimAll(8)
    expect(jobsOf(jobs.slice(0, 40), 'a')).toBeGreaterThanOrEqual(16)
  })

  test('nor when it is told in a transaction that began before', async () => {
    const { limited, queue } = await timed()
    await queue.enqueueMany(60, { tenant: 'a' })
    await queue.enqueueMany(60, { tenant: 'b' })
    const claim = await queue.claim(1)
    await runFor(queue, 3_600)
    const session = await database.session()
    await session.run('begin')
    await session.run('select :schema.complete_v1($1, $2, $3, $3)', [queue.name, claim.ids, [claim.leaseId]])
    await limited.set({ charge: 'jobs' })
    await queue.claim(2)
    await session.run('commit')
    const jobs = await queue.claimAll(8)
    expect(jobsOf(jobs.slice(0, 40), 'a')).toBeGreaterThanOrEqual(16)
  })

  test('is remembered of a tenant that maintenance meets while its only job runs', async () => {
    const { queue } = await timed()
    await queue.enqueueMany(200, { tenant: 'quiet' })
    await queue.enqueue({ tenant: 'long' })
    const first = await queue.claim(1)
    const second = await queue.claim(1)
    const [long, quiet] = first.tenants[0] === 'long' ? [first, second] : [second, first]
    expect(long.tenants).toEqual(['long'])
    await queue.settle(quiet)
    await next(queue, 20)
    await database.query('select :schema.prune_ring_v1(1000)')
    await runFor(queue, 3_600)
    await queue.settle(long)
    await queue.enqueueMany(20, { tenant: 'long' })
    expect(jobsOf(await next(queue, 20), 'long')).toBeLessThanOrEqual(1)
  })
})

describe('what a job was charged and did not take', () => {
  test.each(['the ring is lost', 'jobs are charged in between', 'fifo rules in between'])(
    'is no credit after %s',
    async (event) => {
      const { limited, queue } = await timed()
      await queue.enqueueMany(100, { tenant: 'a' })
      await queue.enqueueMany(100, { tenant: 'b' })
      await next(queue, 4)
      await learn(queue, 'a', 1_000)
      const claims = [await queue.claim(1), await queue.claim(1)]
      expect(claims.flatMap(({ tenants }) => tenants)).toContain('a')
      if (event === 'the ring is lost') {
        for (const table of ['ring', 'walk', 'group_ring', 'signal', 'notice'])
          await database.query(`delete from :schema.${table} where queue = $1`, [queue.name])
      } else {
        await limited.set({ charge: 'jobs', ...(event.startsWith('fifo') && { strategy: 'fifo' }) })
        await queue.claim(1)
        await limited.set({ charge: 'time', strategy: 'fair' })
      }
      await queue.claim(1)
      for (const claim of claims) await queue.settle(claim)
      expect(jobsOf(await next(queue, 40), 'a')).toBeLessThanOrEqual(26)
    },
  )

  test('of an attempt that was charged before a strategy without charges ran the job again', async () => {
    const { limited, queue } = await timed()
    await queue.enqueue({ tenant: 'a' })
    const first = await queue.claim(1)
    await queue.settle(first, { type: 'release' })
    await limited.set({ charge: 'jobs' })
    await limited.set({ strategy: 'fifo' })
    const second = await queue.claim(1)
    expect(second.ids).toEqual(first.ids)
    expect(await database.value('select charged from :schema.job where id = $1', [second.ids[0]])).toBeNull()
  })
})

test('a clock that was set back while a job ran gives no credit', async () => {
  const { queue } = await timed()
  await queue.enqueueMany(100, { tenant: 'a' })
  await queue.enqueueMany(100, { tenant: 'b' })
  const claim = await queue.claim(1)
  await runFor(queue, -3_600)
  await queue.settle(claim)
  expect(jobsOf(await next(queue, 40), claim.tenants[0] ?? '')).toBeLessThanOrEqual(26)
})
