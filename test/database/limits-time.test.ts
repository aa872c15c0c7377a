import { describe, expect, test } from 'vitest'
import type { Job } from '../../src/job/job.js'
import type { Outcome } from '../../src/settle/outcome.js'
import { useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

const FAILURE = { name: 'Error', message: 'no' }

interface Run {
  readonly endsAt: number
  readonly seconds: number
  readonly leaseId: string
  readonly job: Job
}

/** So that what settling itself takes does not matter beside what handlers would have taken. */
const SLOWED = 100

interface Play {
  /** Worker-seconds to hand out. */
  readonly seconds: number
  readonly slots: number
  readonly kinds: readonly string[]
  /** How long a job runs that starts when so many worker-seconds were received. */
  readonly lengthOf: (job: Job, received: number) => number
  readonly outcomeOf?: (job: Job) => Outcome
}

/**
 * A worker with a number of slots, as fast as the database: handlers take no time, but their jobs are made to have been
 * claimed as long ago as they would have run. Answers with the worker-seconds that each tenant received.
 */
async function play(limited: LimitedQueue, { seconds, slots, kinds, lengthOf, outcomeOf }: Play) {
  const received = new Map<string, number>()
  let running: Run[] = []
  let [now, total] = [0, 0]
  while (total < seconds) {
    const { leaseId, jobs } = await limited.queue.claim(slots - running.length, { kinds })
    for (const job of jobs) {
      const length = lengthOf(job, total)
      running.push({ endsAt: now + length, seconds: length, leaseId, job })
    }
    now = Math.min(...running.map(({ endsAt }) => endsAt))
    const ended = running.filter(({ endsAt }) => endsAt <= now + 1e-9)
    running = running.filter((run) => !ended.includes(run))
    await backdate(ended)
    await limited.queue.store.settle(
      limited.name,
      ended.map(({ job, leaseId }) => ({ jobId: job.id, leaseId, outcome: outcomeOf?.(job) ?? { type: 'complete' } })),
      ended.map(({ leaseId }) => leaseId).filter((id) => running.every(({ leaseId }) => leaseId !== id)),
    )
    for (const run of ended) {
      received.set(run.job.tenant, (received.get(run.job.tenant) ?? 0) + run.seconds)
      total += run.seconds
    }
  }
  return received
}

async function backdate(runs: readonly Pick<Run, 'job' | 'seconds'>[]): Promise<void> {
  await database.query(
    `update :schema.job set claimed_at = clock_timestamp() - given.seconds * interval '1 second'
     from unnest($1::bigint[], $2::float8[]) as given (id, seconds) where job.id = given.id`,
    [runs.map(({ job }) => job.id), runs.map(({ seconds }) => seconds * SLOWED)],
  )
}

/** How far the tenants are apart, as a part of the mean. */
function spread(received: ReadonlyMap<string, number>): number {
  const all = [...received.values()]
  return ((Math.max(...all) - Math.min(...all)) / all.reduce((sum, each) => sum + each, 0)) * all.length
}

async function timed(): Promise<LimitedQueue> {
  const limited = new LimitedQueue(database)
  await limited.set({ charge: 'time' })
  return limited
}

const byTenant = ({ tenant }: Job) => (tenant.startsWith('long') ? 1 : 0.1)

describe('worker-seconds', () => {
  test('are shared equally by tenants with jobs of 0.1 s and of 1 s', async () => {
    const limited = await timed()
    await limited.queue.enqueueMany(2_700, { tenant: 'short' })
    await limited.queue.enqueueMany(300, { tenant: 'long' })
    const received = await play(limited, { seconds: 240, slots: 3, kinds: ['send-invoice'], lengthOf: byTenant })
    expect(spread(received), JSON.stringify([...received])).toBeLessThan(0.05)
  })

  test('are shared equally although a kind becomes ten times as long midway, and back', async () => {
    const limited = await timed()
    const kinds = ['changing', 'steady']
    await limited.queue.enqueueMany(1_500, { tenant: 'a', kind: 'changing' })
    await limited.queue.enqueueMany(700, { tenant: 'b', kind: 'steady' })
    await limited.queue.enqueueMany(700, { tenant: 'c', kind: 'steady' })
    const received = await play(limited, {
      seconds: 360,
      slots: 4,
      kinds,
      lengthOf: ({ kind }, total) => (kind === 'steady' ? 0.5 : total < 150 || total > 300 ? 0.2 : 2),
    })
    expect(spread(received), JSON.stringify([...received])).toBeLessThan(0.05)
  })

  test('are counted for retries, releases, snoozes and discards too', async () => {
    const limited = await timed()
    await limited.queue.enqueueMany(600, { tenant: 'short', maxAttempts: 100 })
    await limited.queue.enqueueMany(200, { tenant: 'long', maxAttempts: 100 })
    const outcomes: readonly Outcome[] = [
      { type: 'retry', delayMs: 0, failure: FAILURE },
      { type: 'release' },
      { type: 'snooze', delayMs: 1 },
      { type: 'discard', failure: FAILURE },
      { type: 'cancel', reason: 'no' },
      { type: 'complete' },
    ]
    let nth = 0
    const received = await play(limited, {
      seconds: 100,
      slots: 5,
      kinds: ['send-invoice'],
      lengthOf: byTenant,
      outcomeOf: () => {
        nth += 1
        return outcomes[nth % outcomes.length] as Outcome
      },
    })
    expect(spread(received), JSON.stringify([...received])).toBeLessThan(0.08)
  })

  test('weigh as the tenants and groups do', async () => {
    const limited = await timed()
    await limited.setTenant('long', { weight: 2 })
    for (const tenant of ['g1', 'g2']) await limited.setTenant(tenant, { group: 'g' })
    await limited.queue.enqueueMany(200, { tenant: 'long' })
    await limited.queue.enqueueMany(2_000, { tenant: 'short' })
    for (const tenant of ['g1', 'g2']) await limited.queue.enqueueMany(1_000, { tenant })
    const received = await play(limited, { seconds: 160, slots: 6, kinds: ['send-invoice'], lengthOf: byTenant })
    const group = (received.get('g1') ?? 0) + (received.get('g2') ?? 0)
    expect(received.get('long') ?? 0, JSON.stringify([...received])).toBeGreaterThan(74)
    expect(received.get('long') ?? 0).toBeLessThan(86)
    expect(Math.abs(group - (received.get('short') ?? 0)), JSON.stringify([...received])).toBeLessThan(4)
  })
})

test('a lease that ran out is charged for as long as it was held', async () => {
  const limited = await timed()
  for (const tenant of ['a', 'b']) await limited.queue.enqueueMany(60, { tenant })
  const first = await limited.queue.claim(1)
  const [lost] = first.jobs
  if (!lost) throw new Error('expected a job')
  await backdate([{ job: lost, seconds: 20 }])
  await limited.reclaim([first.leaseId])
  const other = lost.tenant === 'a' ? 'b' : 'a'
  const received = await play(limited, { seconds: 15, slots: 1, kinds: ['send-invoice'], lengthOf: () => 1 })
  expect(received.get(other)).toBeGreaterThanOrEqual(14)
})

test('each job carries what was charged for it, and is corrected by that alone', async () => {
  const limited = await timed()
  for (const tenant of ['a', 'b']) await limited.queue.enqueueMany(60, { tenant })
  await play(limited, { seconds: 20, slots: 2, kinds: ['send-invoice'], lengthOf: () => 0.25 })
  await limited.queue.claim(1)
  const passes = await database.query<{ pass: number }>('select pass from :schema.ring where queue = $1', [
    limited.name,
  ])
  const charged = await database.value<number>(
    `select sum(charged)::float8 from :schema.job where queue = $1 and state = 'running'`,
    [limited.name],
  )
  const total = passes.reduce((sum, { pass }) => sum + pass, 0)
  expect(Math.abs(total - 20 * SLOWED - charged), 'passes are the seconds that were received (T1)').toBeLessThan(
    0.5 * SLOWED,
  )
})

test('what is charged can be switched while jobs run, and back', async () => {
  const limited = new LimitedQueue(database)
  await limited.queue.enqueueMany(1_500, { tenant: 'short' })
  await limited.queue.enqueueMany(400, { tenant: 'long' })
  const running = await limited.queue.claim(4)
  await limited.set({ charge: 'time' })
  await limited.queue.settle(running)
  const timed = await play(limited, { seconds: 100, slots: 4, kinds: ['send-invoice'], lengthOf: byTenant })
  expect(spread(timed), JSON.stringify([...timed])).toBeLessThan(0.1)
  const more = await limited.queue.claim(4)
  await limited.set({ charge: 'jobs' })
  await limited.queue.settle(more)
  // What one is ahead of the other by, in seconds, is made up for in jobs first.
  for (let n = 0; n < 4; n += 1) await limited.queue.settle(await limited.queue.claim(100))
  const counts = new Map<string, number>()
  for (let n = 0; n < 20; n += 1) {
    const claim = await limited.queue.claim(4)
    for (const tenant of claim.tenants) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
    await limited.queue.settle(claim)
  }
  expect(
    Math.abs((counts.get('short') ?? 0) - (counts.get('long') ?? 0)),
    JSON.stringify([...counts]),
  ).toBeLessThanOrEqual(2)
})
