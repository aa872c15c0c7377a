import { describe, expect, test } from 'vitest'
import { HeldClaim, useSharedDatabase } from '../support/claims.js'
import { countTenants } from '../support/fair-share.js'
import { LimitedQueue } from '../support/limits.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

type Limit = (limited: LimitedQueue, concurrency: number | null) => Promise<void>

const SCOPES: readonly { readonly scope: string; readonly limit: Limit }[] = [
  { scope: 'a queue', limit: (limited, concurrency) => limited.set({ concurrency }) },
  { scope: 'a FIFO queue', limit: (limited, concurrency) => limited.set({ strategy: 'fifo', concurrency }) },
  {
    scope: 'a round-robin queue',
    limit: (limited, concurrency) => limited.set({ strategy: 'round-robin', concurrency }),
  },
  { scope: 'a kind', limit: (limited, concurrency) => limited.setKind('send-invoice', { concurrency }) },
  { scope: 'a tenant', limit: (limited, concurrency) => limited.setTenant('acme', { concurrency }) },
  { scope: 'each tenant', limit: (limited, concurrency) => limited.set({ tenant_concurrency: concurrency }) },
]

describe.each(SCOPES)('the limit of $scope', ({ limit }) => {
  test('acts at the next claim: set, raised, lowered below what runs, 0, removed while jobs run (B16)', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await queue.enqueueMany(60)
    const held: HeldClaim[] = [await queue.claim(2)]
    const started = async () => {
      const claim = await queue.claim(8)
      held.push(claim)
      return claim.ids.length
    }
    await limit(limited, 3)
    expect(await started()).toBe(1)
    expect(await started()).toBe(0)
    await limit(limited, 5)
    expect(await started()).toBe(2)
    await limit(limited, 2)
    expect(await started()).toBe(0)
    await queue.settle(held[0] as HeldClaim)
    await queue.settle(held[1] as HeldClaim)
    expect(await started()).toBe(0)
    await queue.settle(held[3] as HeldClaim)
    expect(await started()).toBe(2)
    await limit(limited, 0)
    await queue.settle(held.at(-1) as HeldClaim)
    expect(await started()).toBe(0)
    await limit(limited, 1)
    expect(await started()).toBe(1)
    await limit(limited, null)
    expect(await started()).toBe(8)
    await limit(limited, 1_000_000)
    expect(await started()).toBe(8)
  })

  test('is given back by every end of a run, once (B07)', async () => {
    const limited = new LimitedQueue(database)
    const { queue } = limited
    await limit(limited, 4)
    await queue.enqueueMany(40, { maxAttempts: 50 })
    const failure = { name: 'Error', message: 'no' }
    for (const outcome of [
      { type: 'complete' },
      { type: 'retry', delayMs: 0, failure },
      { type: 'retry', delayMs: 600_000, failure },
      { type: 'snooze', delayMs: 600_000 },
      { type: 'release' },
      { type: 'cancel', reason: 'no' },
      { type: 'discard', failure },
    ] as const) {
      const claim = await queue.claim(8)
      expect(claim.ids, outcome.type).toHaveLength(4)
      await queue.settle(claim, outcome)
      expect(await queue.settle(claim, outcome)).toEqual([])
    }
    const lost = await queue.claim(8)
    await limited.reclaim([lost.leaseId])
    const next = await queue.claim(8)
    expect(next.ids).toHaveLength(4)
    expect(await queue.settle(lost)).toEqual([])
    expect((await queue.claim(8)).ids).toEqual([])
  })

  test('counts a claim that is not committed yet, and jobs of higher priority that come in between (B02)', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, 2)
    await limited.queue.enqueueMany(20)
    for (const ending of ['commit', 'rollback'] as const) {
      const first = await database.session()
      const second = await database.session()
      await first.run('begin isolation level read committed')
      expect(await first.claim(limited.name, 2)).toHaveLength(2)
      await limited.queue.enqueue({ priority: 100 })
      const rest = second.claim(limited.name, 5)
      await until(() => second.isWaiting(), { until: 'the second claim waits for the first' })
      await first.run(ending)
      expect(await rest).toHaveLength(ending === 'commit' ? 0 : 2)
      expect(await limited.running()).toEqual({ [limited.name]: 2 })
      await limited.reclaim(await leases(limited.name))
    }
  })

  test('counts what runs, whatever the order of ids, enqueues and commits (B05)', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, 2)
    const early = await database.session()
    await early.run('begin')
    await early.run(`select :schema.enqueue('send-invoice', '1', 'acme', $1)`, [
      JSON.stringify({ queue: limited.name }),
    ])
    const later = await limited.queue.enqueueMany(2)
    const claim = await limited.queue.claim(5)
    expect(claim.ids.sort()).toEqual(later.sort())
    await early.run('commit')
    await limited.queue.enqueue({})
    expect((await limited.queue.claim(5)).ids).toEqual([])
    await limited.queue.settle(claim)
    expect((await limited.queue.claim(5)).ids).toHaveLength(2)
  })

  test('is not waited for while it is changed in a transaction that stays open (B16)', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, 1)
    await limited.queue.enqueueMany(10)
    const admin = await database.session()
    await admin.run('begin')
    await admin.run(`select :schema.configure_queue($1, '{"concurrency": 5, "key_concurrency": 3}')`, [limited.name])
    const claim = await limited.queue.claim(5)
    expect(claim.ids).toHaveLength(1)
    await limited.queue.settle(claim)
    await limited.queue.enqueue({ key: 'k' })
    expect((await limited.queue.claim(5)).ids).toHaveLength(1)
    await admin.run('rollback')
  })
})

test('1,000 tenants are limited in a transaction that stays open, and nobody waits for it (B16)', async () => {
  const limited = new LimitedQueue(database)
  for (const tenant of ['t1', 't2', 't3']) await limited.queue.enqueueMany(10, { tenant })
  const admin = await database.session()
  await admin.run('begin')
  await admin.run(
    `select :schema.configure_tenant($1, 't' || n, '{"concurrency": 1}') from generate_series(1, 1000) as n`,
    [limited.name],
  )
  const claim = await limited.queue.claim(9)
  expect(claim.ids).toHaveLength(9)
  expect(countTenants(claim.tenants).size).toBe(3)
  await limited.queue.settle(claim)
  await admin.run('commit')
  expect((await limited.queue.claim(9)).tenants.sort()).toEqual(['t1', 't2', 't3'])
})

test('of a tenant, holds within one claim however often the claim goes round, and the batch is filled from others', async () => {
  const limited = new LimitedQueue(database)
  await limited.setTenant('small', { concurrency: 3 })
  await limited.queue.enqueueMany(200, { tenant: 'small' })
  await limited.queue.enqueueMany(7, { tenant: 'shallow' })
  await limited.queue.enqueueMany(200, { tenant: 'large' })
  const claim = await limited.queue.claim(100)
  expect(Object.fromEntries(countTenants(claim.tenants))).toEqual({ small: 3, shallow: 7, large: 90 })
})

test('of a tenant holds across kinds, also when different workers know them', async () => {
  const limited = new LimitedQueue(database)
  await limited.setTenant('acme', { concurrency: 3 })
  for (const kind of ['k1', 'k2']) await limited.queue.enqueueMany(10, { kind })
  const one = await limited.queue.claim(2, { kinds: ['k1'] })
  const other = await limited.queue.claim(5, { kinds: ['k2'] })
  expect([one.ids.length, other.ids.length]).toEqual([2, 1])
  expect((await limited.queue.claim(5, { kinds: ['k1', 'k2'] })).ids).toEqual([])
  await limited.queue.settle(one)
  expect((await limited.queue.claim(5, { kinds: ['k2'] })).ids).toHaveLength(2)
})

test('of a kind is shared by its tenants in turns, and hides no other kind', async () => {
  const limited = new LimitedQueue(database)
  const kinds = { kinds: ['rare', 'send-invoice'] }
  await limited.setKind('rare', { concurrency: 2 })
  for (const tenant of ['a', 'b', 'c', 'd']) {
    await limited.queue.enqueueMany(50, { tenant, kind: 'rare' })
    await limited.queue.enqueueMany(1, { tenant })
  }
  const first = await limited.queue.claim(6, kinds)
  expect(first.jobs.filter(({ kind }) => kind === 'rare')).toHaveLength(2)
  expect(first.ids).toHaveLength(6)
  const served: string[] = []
  let running = first
  for (let n = 0; n < 40; n += 1) {
    await limited.queue.settle(running)
    running = await limited.queue.claim(6, kinds)
    expect(running.ids).toHaveLength(2)
    served.push(...running.tenants)
  }
  for (const jobs of countTenants(served).values()) expect(Math.abs(jobs - 20)).toBeLessThanOrEqual(2)
})

test('a tenant at its limit hides nobody, however many such tenants there are and however much they have (B08)', async () => {
  const limited = new LimitedQueue(database)
  const ids = await limited.queue.enqueueMany(1, { tenant: 'fresh' })
  await insertBacklog(limited.name, { tenants: 500, jobs: 40 })
  await limited.set({ tenant_concurrency: 1 })
  for (let started = 0; started < 501; ) started += (await limited.queue.claim(100)).ids.length
  await limited.queue.enqueueMany(1, { tenant: 'fresh' })
  for (let n = 0; n < 3; n += 1) expect((await limited.queue.claim(10)).ids).toEqual([])
  await limited.queue.settle(await heldBy(limited, ids[0]))
  expect((await limited.queue.claim(10)).tenants).toEqual(['fresh'])
  expect(await limited.running()).toEqual({ [limited.name]: 501 })
})

test.each(['aaa', 'zzz'])(
  'slots that become free one at a time go round, whatever the names; noisy is %s (B10, B11)',
  async (noisy) => {
    const limited = new LimitedQueue(database)
    await limited.set({ concurrency: 4 })
    await insertBacklog(limited.name, { tenants: 1, jobs: 1_000, name: noisy })
    const quiet = Array.from({ length: 10 }, (_, n) => `m${n}`)
    for (const tenant of quiet) await limited.queue.enqueueMany(10, { tenant })
    const running: HeldClaim[] = []
    for (let n = 0; n < 4; n += 1) running.push(await limited.queue.claim(1))
    const starts: string[] = running.flatMap(({ tenants }) => tenants)
    for (let n = 0; n < 100; n += 1) {
      await limited.queue.settle(running.splice((n * 3) % 4, 1)[0] as HeldClaim)
      const claim = await limited.queue.claim(1)
      running.push(claim)
      starts.push(...claim.tenants)
    }
    for (let from = 0; from + 22 <= 100; from += 1) {
      for (const tenant of [noisy, ...quiet]) {
        const jobs = starts.slice(from, from + 22).filter((each) => each === tenant).length
        expect(jobs, `${tenant} from start ${from}`).toBeGreaterThanOrEqual(1)
        expect(jobs, `${tenant} from start ${from}`).toBeLessThanOrEqual(3)
      }
    }
  },
)

async function leases(queue: string): Promise<string[]> {
  const rows = await database.query<{ id: string }>('select id from :schema.lease where queue = $1', [queue])
  return rows.map(({ id }) => id)
}

async function heldBy(limited: LimitedQueue, id: string | undefined): Promise<HeldClaim> {
  const leaseId = await database.value<string>('select lease_id from :schema.job where id = $1', [id])
  const jobs = (await limited.queue.store.claimed(leaseId)).filter((job) => job.id === id)
  return new HeldClaim(limited.name, leaseId, { jobs })
}

interface Backlog {
  readonly tenants: number
  readonly jobs: number
  readonly name?: string
}

async function insertBacklog(queue: string, { tenants, jobs, name }: Backlog): Promise<void> {
  await database.query(
    `insert into :schema.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select $1, 'send-invoice', coalesce($4, 'limited' || tenant), 'available', 0, 5, now(), now(), now(), '1'
     from generate_series(1, $2) as tenant, generate_series(1, $3) as n`,
    [queue, tenants, jobs, name],
  )
}
