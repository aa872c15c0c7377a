import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { defineJob } from '../../src/job/define-job.js'
import type { TenantNumbers } from '../../src/numbers/numbers.js'
import { percentile } from '../../src/workload/statistics.js'
import { type Counted, minuteOf, numbersStore, windowParts } from '../support/numbers.js'
import { createTenantry, type TestTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const QUEUE = 'mail'

let database: TestTenantry
beforeEach(async () => {
  database = await createTenantry()
})

async function record(counted: Readonly<Record<string, Counted>>, { worker = 'w', ago = 0 } = {}) {
  const store = numbersStore(database)
  for (const part of windowParts(QUEUE, await minuteOf(database, ago), counted)) await store.record(worker, part)
}

async function tenant(name: string, minutes = 5): Promise<TenantNumbers> {
  const all = await database.tenantry.tenants({ queue: QUEUE, minutes })
  const found = all.find((each) => each.tenant === name)
  if (!found) throw new Error(`expected the tenant ${name} among ${all.map((each) => each.tenant).join(', ')}`)
  return found
}

/** Rows as they would be after enqueues and claims; `minutesAgo` is since when they are due. */
async function jobs(
  count: number,
  of: { tenant: string; state?: string; minutesAgo?: number; kind?: string; priority?: number },
) {
  const { tenant, state = 'available', minutesAgo = 0, kind = 'k', priority = 0 } = of
  const lease = state === 'running' ? randomUUID() : null
  if (lease !== null) {
    await database.query(
      `insert into ${database.quoted}.lease (id, queue, worker_id, claimed_at, expires_at) values ($1, $2, 'w', now(), now() + interval '1 hour')`,
      [lease, QUEUE],
    )
  }
  await database.query(
    `insert into ${database.quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload, lease_id, key)
     select $1, $5, $2, $3::text::${database.quoted}.job_state, $6::smallint, 20, at, at - $6::smallint * interval '1 minute', least(at, now()), '{}',
       $8::uuid, case when $3::text = 'blocked' then 'key' end
     from generate_series(1, $4::integer), lateral (select now() - $7::double precision * interval '1 minute' as at) as due`,
    [QUEUE, tenant, state, count, kind, priority, minutesAgo, lease],
  )
}

async function lane(
  name: string,
  of: { pass: number; ready?: boolean; enteredAgo?: number; servedAgo?: number; parked?: boolean; grp?: string },
) {
  const { pass, ready = true, enteredAgo = 60, servedAgo, parked = false, grp = '' } = of
  await database.query(
    `insert into ${database.quoted}.ring (queue, tenant, kind, grp, pass, ready, parked_at, parked_until, entered_at, served_at, head_at, head_id)
     values ($1, $2, 'k', $3, $4, $5, case when $6::boolean then now() end, case when $6::boolean then timestamptz 'infinity' end,
       now() - $7::double precision * interval '1 second', now() - $8::double precision * interval '1 second', now(), 0)`,
    [QUEUE, name, grp, pass, ready && !parked, parked, enteredAgo, servedAgo ?? null],
  )
}

describe('what workers record', () => {
  test('is the sum over the workers, of tenants in whatever order', async () => {
    const forwards = { a: { waitsMs: [5], completed: 1 }, b: { waitsMs: [5, 5], failed: 2 } }
    const backwards = { b: { waitsMs: [7], busyMs: 2_500 }, a: { waitsMs: [7, 7] } }
    const minute = await minuteOf(database)
    const store = numbersStore(database)
    const flush = async (worker: string, counted: Readonly<Record<string, Counted>>) => {
      for (const part of windowParts(QUEUE, minute, counted)) await store.record(worker, part)
    }
    // Again and again and side by side, as two workers would: nobody waits, and nothing is counted twice.
    await Promise.all(Array.from({ length: 20 }, () => [flush('one', forwards), flush('two', backwards)]).flat())
    const rows = await database.query(
      `select tenant, started::int, completed::int, failed::int, busy_seconds from ${database.quoted}.tenant_window order by tenant`,
    )
    expect(rows).toEqual([
      { tenant: 'a', started: 3, completed: 1, failed: 0, busy_seconds: 0 },
      { tenant: 'b', started: 3, completed: 0, failed: 2, busy_seconds: 2.5 },
    ])
  })

  test('replaces what the worker recorded of the same minute before', async () => {
    await record({ a: { waitsMs: [5] } })
    await record({ a: { waitsMs: [5, 5, 5] }, b: { completed: 1 } })
    expect(await tenant('a')).toMatchObject({ started: 3 })
  })

  test('waits for a lock for a second at most, and then for the next flush', async () => {
    const minute = await minuteOf(database)
    const [part] = windowParts(QUEUE, minute, { a: { waitsMs: [5] } })
    if (!part) throw new Error('expected a part')
    const store = numbersStore(database)
    await store.record('w', part)
    const holder = await database.connect()
    await holder.query(`begin; select from ${database.quoted}.worker_window for update`)
    await expect(store.record('w', part)).rejects.toMatchObject({ code: 'QUERY_FAILED' })
    await holder.query('rollback')
    await store.record('w', part)
  })

  test('is forgotten after an hour, a bounded number of rows a call', async () => {
    for (const ago of [0, 59, 63, 64, 65]) await record({ a: { completed: 1 } }, { ago })
    const prune = () => database.query<{ n: number }>(`select ${database.quoted}.prune_numbers_v1(2) as n`)
    expect(await prune()).toEqual([{ n: 2 }])
    expect(await prune()).toEqual([{ n: 1 }])
    expect(await database.query(`select from ${database.quoted}.worker_window`)).toHaveLength(2)
  })
})

describe('percentiles', () => {
  test('are within 9.1 % of the exact ones, whatever the times, with several workers and minutes', async () => {
    const ms = fc.oneof(fc.double({ min: 1.1, max: 50, noNaN: true }), fc.double({ min: 1.1, max: 8e7, noNaN: true }))
    const samples = fc.sample(
      fc.tuple(fc.array(ms, { minLength: 1, maxLength: 60 }), fc.array(ms, { maxLength: 60 })),
      {
        numRuns: 40,
        seed: 11,
      },
    )
    const half = (which: 0 | 1) =>
      Object.fromEntries(samples.map((each, index) => [`t${index}`, { waitsMs: each[which], runsMs: each[which] }]))
    await record(half(0), { worker: 'one' })
    await record(half(1), { worker: 'two', ago: 1 })
    const found = new Map((await database.tenantry.tenants({ queue: QUEUE })).map((each) => [each.tenant, each]))
    for (const [index, [first, second]] of samples.entries()) {
      const exact = Float64Array.from([...first, ...second]).sort()
      const { waitMs, runMs, started } = found.get(`t${index}`) ?? {}
      expect(started).toBe(exact.length)
      for (const [name, percent] of [
        ['p50', 50],
        ['p95', 95],
        ['p99', 99],
      ] as const) {
        const expected = percentile(exact, percent)
        expect(Math.abs(Math.log2((waitMs?.[name] ?? 0) / expected)), `${name} of ${exact}`).toBeLessThanOrEqual(
          1 / 8 + 1e-9,
        )
        expect(runMs?.[name]).toBe(waitMs?.[name])
      }
    }
  })
})

describe('what waits', () => {
  test('is counted by state, with the age of the next job, also of one that is due and not yet promoted', async () => {
    await jobs(3, { tenant: 'a', minutesAgo: 2 })
    await jobs(2, { tenant: 'a', kind: 'other', minutesAgo: 4 })
    await jobs(4, { tenant: 'a', state: 'scheduled', minutesAgo: -5 })
    await jobs(5, { tenant: 'a', state: 'blocked', minutesAgo: 9 })
    await jobs(6, { tenant: 'a', state: 'running', minutesAgo: 9 })
    await jobs(1, { tenant: 'b', state: 'scheduled', minutesAgo: 1 })
    await jobs(1, { tenant: 'c', state: 'scheduled', minutesAgo: -1 })
    expect(await tenant('a')).toMatchObject({ available: 5, scheduled: 4, blocked: 5, running: 6, capped: false })
    expect((await tenant('a')).oldestMs).toBeGreaterThanOrEqual(240_000)
    expect((await tenant('a')).oldestMs).toBeLessThan(540_000)
    expect((await tenant('b')).oldestMs).toBeGreaterThanOrEqual(60_000)
    expect((await tenant('c')).oldestMs).toBeUndefined()
  })

  test('is counted to a bound, which a few deep backlogs share, and says so', async () => {
    await jobs(1_000, { tenant: 'deep' })
    await jobs(1_000, { tenant: 'deep too' })
    for (const name of ['x', 'y', 'z']) await jobs(2, { tenant: name })
    const all = await database.tenantry.tenants({ queue: QUEUE, countMax: 1_000, sort: 'name' })
    expect(all.map((each) => [each.tenant, each.capped])).toEqual([
      ['deep', true],
      ['deep too', true],
      ['x', false],
      ['y', false],
      ['z', false],
    ])
    const deep = all[0]?.available ?? 0
    expect(deep).toBeGreaterThan(300)
    expect(deep).toBeLessThanOrEqual(500)
    expect(all[2]?.available).toBe(2)
    const [exact] = await database.query(
      `select available::int from ${database.quoted}.tenant_overview where tenant = 'deep'`,
    )
    expect(exact).toEqual({ available: 1_000 })
  })

  test('is found whatever the names are, in one queue and not in another', async () => {
    const names = ['', ' ', 'Ä', 'a', 'a\u{1f600}', "x' or '1'='1", '\u{10ffff}'].slice(1)
    for (const name of names) await jobs(1, { tenant: name })
    await database.query(`update ${database.quoted}.job set queue = 'other' where tenant = 'a'`)
    const all = await database.tenantry.tenants({ queue: QUEUE })
    expect(all.map((each) => each.tenant).sort()).toEqual(names.filter((name) => name !== 'a').sort())
    expect((await database.tenantry.queues()).map(({ queue, tenants }) => [queue, tenants])).toEqual([
      [QUEUE, names.length - 1],
      ['other', 1],
    ])
  })
})

describe('shares', () => {
  test('are those of the weights among tenants that were served or wait, groups first', async () => {
    const { tenantry } = database
    await tenantry.configureTenant(QUEUE, 'heavy', { weight: 3 })
    await tenantry.configureGroup(QUEUE, 'org', { weight: 2 })
    await tenantry.configureTenant(QUEUE, 'user 1', { group: 'org' })
    await tenantry.configureTenant(QUEUE, 'user 2', { group: 'org', weight: 3 })
    await tenantry.configureTenant(QUEUE, 'idle', { weight: 100 })
    await jobs(1, { tenant: 'waits' })
    await record({ heavy: { waitsMs: [5, 5] }, 'user 1': { waitsMs: [5] }, 'user 2': { waitsMs: [5] } })
    const all = Object.fromEntries((await tenantry.tenants({ queue: QUEUE })).map((each) => [each.tenant, each]))
    const shares = (name: string) => [all[name]?.receivedShare, all[name]?.entitledShare]
    expect(shares('heavy')).toEqual([0.5, 0.5])
    expect(shares('waits')).toEqual([0, 1 / 6])
    expect(shares('user 1')).toEqual([0.25, expect.closeTo((2 / 6) * (1 / 4))])
    expect(shares('user 2')).toEqual([0.25, expect.closeTo((2 / 6) * (3 / 4))])
    expect(shares('idle')).toEqual([0, 0])
  })

  test('are of the time of the slots where time is charged', async () => {
    await database.tenantry.configureQueue(QUEUE, { charge: 'time' })
    await record({ short: { waitsMs: [5, 5, 5], busyMs: 1_000 }, long: { waitsMs: [5], busyMs: 3_000 } })
    expect((await tenant('long')).receivedShare).toBeCloseTo(0.75)
  })

  test('leave out a tenant that waits and is paused or at its limit', async () => {
    await database.tenantry.pause(QUEUE, { tenant: 'paused' })
    for (const name of ['paused', 'parked', 'free']) await jobs(1, { tenant: name })
    await lane('parked', { pass: 0, parked: true })
    expect(await tenant('paused')).toMatchObject({ paused: true, entitledShare: 0 })
    expect(await tenant('parked')).toMatchObject({ parked: true, entitledShare: 0 })
    expect(await tenant('free')).toMatchObject({ paused: false, parked: false, entitledShare: 1 })
  })
})

describe('noisy', () => {
  test.each([
    ['30 of 299 jobs that run', 30, 269, true],
    ['30 of 300, which is a tenth and no more', 30, 270, false],
    ['29, however few others there are', 29, 1, false],
  ])('%s', async (_, own, others, noisy) => {
    await jobs(own, { tenant: 'a', state: 'running' })
    await jobs(others, { tenant: 'b', state: 'running' })
    expect((await tenant('a')).noisy).toBe(noisy)
  })

  test.each([
    [101, true],
    [100, false],
  ])('%d s of 1,000 s of the slots', async (seconds, noisy) => {
    await record({ a: { busyMs: seconds * 1_000 }, b: { busyMs: (1_000 - seconds) * 1_000 } })
    expect((await tenant('a')).noisy).toBe(noisy)
  })
})

describe('starved', () => {
  test('is who was passed over: another with a larger pass than a turn away was served since', async () => {
    await lane('starved', { pass: 100, enteredAgo: 60 })
    await lane('served', { pass: 200, servedAgo: 10 })
    expect((await database.tenantry.tenants({ queue: QUEUE })).map(({ starved }) => starved)).toEqual([])
    await jobs(1, { tenant: 'starved' })
    await jobs(1, { tenant: 'served' })
    expect(await tenant('starved')).toMatchObject({ starved: true, pass: 100, passLag: 0 })
    expect(await tenant('served')).toMatchObject({ starved: false, pass: 200, passLag: 100 })
  })

  test.each<[string, Parameters<typeof lane>[1], Parameters<typeof lane>[1]]>([
    ['the other is within a turn', { pass: 100 }, { pass: 164, servedAgo: 10 }],
    ['it was served after the other', { pass: 100, servedAgo: 5 }, { pass: 200, servedAgo: 10 }],
    ['it came after the other was served', { pass: 100, enteredAgo: 5 }, { pass: 200, servedAgo: 10 }],
    ['it has nothing ready', { pass: 100, ready: false }, { pass: 200, servedAgo: 10 }],
    ['it is at its limit', { pass: 100, parked: true }, { pass: 200, servedAgo: 10 }],
    ['the other is of another group', { pass: 100 }, { pass: 200, servedAgo: 10, grp: 'org' }],
    ['the other was not served', { pass: 100 }, { pass: 200 }],
  ])('is not who waits while %s', async (_, own, other) => {
    await lane('a', own)
    await lane('b', other)
    await jobs(1, { tenant: 'a' })
    expect((await tenant('a')).starved).toBe(false)
  })

  test('is not who waits for a kind that is paused, while the other is served in another kind too', async () => {
    await lane('a', { pass: 100 })
    await lane('b', { pass: 200, servedAgo: 10 })
    await jobs(1, { tenant: 'a' })
    expect((await tenant('a')).starved).toBe(true)
    await database.tenantry.pause(QUEUE, { kind: 'k' })
    expect((await tenant('a')).starved).toBe(false)
  })

  test('takes a turn for as long as the weight of the other makes it', async () => {
    await database.tenantry.configureTenant(QUEUE, 'b', { weight: 0.1 })
    await lane('a', { pass: 100 })
    await lane('b', { pass: 700, servedAgo: 10 })
    await jobs(1, { tenant: 'a' })
    expect((await tenant('a')).starved).toBe(false)
  })
})

describe('objectives', () => {
  const objective = { waitMs: 2_000, share: 0.95 }

  test.each([
    [95, true],
    [94, false],
  ])('with %d of 100 jobs in time', async (inTime, met) => {
    await database.tenantry.configureTenant(QUEUE, 'a', { objective })
    const waitsMs = [...Array<number>(inTime).fill(100), ...Array<number>(100 - inTime).fill(9_000)]
    await record({ a: { waitsMs } })
    expect((await tenant('a')).objective).toEqual({ ...objective, reached: inTime / 100, met })
  })

  test("are the tenant's own, else its group's, else the queue's", async () => {
    const { tenantry } = database
    await tenantry.configureQueue(QUEUE, { objective: { waitMs: 1_000, share: 0.5 } })
    await tenantry.configureGroup(QUEUE, 'org', { objective: { waitMs: 2_000, share: 0.6 } })
    await tenantry.configureTenant(QUEUE, 'own', { group: 'org', objective: { waitMs: 3_000, share: 0.7 } })
    await tenantry.configureTenant(QUEUE, 'member', { group: 'org' })
    await record({ own: { waitsMs: [1] }, member: { waitsMs: [1] }, other: { waitsMs: [1] } })
    const all = await tenantry.tenants({ queue: QUEUE, sort: 'name' })
    expect(
      all.map((each) => [each.tenant, each.objective?.waitMs, each.objective?.share, each.objective?.met]),
    ).toEqual([
      ['member', 2_000, 0.6, true],
      ['other', 1_000, 0.5, true],
      ['own', 3_000, 0.7, true],
    ])
    expect(await tenantry.queues({ queue: QUEUE })).toMatchObject([{ objectivesMet: 3, objectivesMissed: 0 }])
  })

  test('count jobs that wait for too long already, but not those of a tenant that is paused', async () => {
    const { tenantry } = database
    await tenantry.configureQueue(QUEUE, { objective })
    await jobs(3, { tenant: 'late', minutesAgo: 1 })
    await jobs(1, { tenant: 'fresh' })
    await jobs(3, { tenant: 'paused', minutesAgo: 1 })
    await tenantry.pause(QUEUE, { tenant: 'paused' })
    await record({ late: { waitsMs: [1] } })
    expect((await tenant('late')).objective).toMatchObject({ reached: 0.25, met: false })
    expect((await tenant('fresh')).objective).toMatchObject({ reached: undefined, met: undefined })
    expect((await tenant('paused')).objective).toMatchObject({ reached: undefined, met: undefined })
  })

  test('look back for the minutes that are asked for, and no further', async () => {
    await database.tenantry.configureQueue(QUEUE, { objective })
    await record({ a: { waitsMs: [9_000] } }, { ago: 4 })
    await record({ a: { waitsMs: [10] } })
    expect((await tenant('a', 5)).objective?.reached).toBe(0.5)
    expect((await tenant('a', 2)).objective?.reached).toBe(1)
  })
})

describe("Jain's index", () => {
  const jain = async () => (await database.tenantry.queues({ queue: QUEUE }))[0]?.jain

  test('is 1 when those that had work got shares by their weights, whatever the others got', async () => {
    await database.tenantry.configureTenant(QUEUE, 'b', { weight: 2 })
    await jobs(1, { tenant: 'a', minutesAgo: 5 })
    await jobs(1, { tenant: 'b', minutesAgo: 5 })
    await record({ a: { waitsMs: [1, 1] }, b: { waitsMs: [1, 1, 1, 1] }, idle: { waitsMs: [1] } }, { ago: 1 })
    expect(await jain()).toBeCloseTo(1)
  })

  test('is 1/n when one of n got everything', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await jobs(1, { tenant: name, minutesAgo: 5 })
    await record({ a: { waitsMs: [1, 1, 1] } }, { ago: 1 })
    expect(await jain()).toBeCloseTo(1 / 4)
  })

  test('compares the parts of a group as what they are entitled to', async () => {
    for (const name of ['one', 'two']) {
      await database.tenantry.configureTenant(QUEUE, name, { group: 'org' })
      await jobs(1, { tenant: name, minutesAgo: 5 })
    }
    await jobs(1, { tenant: 'alone', minutesAgo: 5 })
    await record({ one: { waitsMs: [1] }, two: { waitsMs: [1] }, alone: { waitsMs: [1, 1] } }, { ago: 1 })
    expect(await jain()).toBeCloseTo(1)
  })

  test('is not there with one tenant, with those that came within the minute, or when nobody was served', async () => {
    await jobs(1, { tenant: 'a', minutesAgo: 5 })
    await jobs(1, { tenant: 'new' })
    await record({ a: { waitsMs: [1] }, new: { waitsMs: [1] } }, { ago: 1 })
    expect(await jain()).toBeUndefined()
    await jobs(1, { tenant: 'b', minutesAgo: 5 })
    expect(await jain()).toBeCloseTo(1 / 2)
    await database.query(`truncate ${database.quoted}.worker_window`)
    expect(await jain()).toBeUndefined()
  })
})

describe('queues', () => {
  test('add up their tenants and show their workers', async () => {
    await jobs(2, { tenant: 'a' })
    await jobs(3, { tenant: 'b', state: 'scheduled', minutesAgo: -5 })
    await record({ a: { waitsMs: [100, 100], completed: 2 }, c: { waitsMs: [100], failed: 1 } })
    const store = numbersStore(database)
    await store.beat({ workerId: 'w', queues: [QUEUE, 'other'], kinds: ['k'], slots: 10, running: 0, ageMs: 5 })
    const all = await database.tenantry.queues()
    expect(all.map(({ queue }) => queue)).toEqual([QUEUE, 'other'])
    expect(all[0]).toMatchObject({
      tenants: 3,
      waitingTenants: 1,
      available: 2,
      scheduled: 3,
      workers: 1,
      slots: 10,
      started: 3,
      completed: 2,
      failed: 1,
    })
    expect(Math.abs(Math.log2((all[0]?.waitMs?.p99 ?? 0) / 100))).toBeLessThanOrEqual(1 / 8)
    expect(all[1]).toMatchObject({ workers: 1, tenants: 0, started: 0, waitMs: undefined })
  })
})

describe('a worker', () => {
  const work = defineJob({ kind: 'work', queue: QUEUE, maxAttempts: 1 })

  test('is there while it runs, and leaves its numbers behind when it stops', async () => {
    const { tenantry } = database
    const worker = tenantry.worker({ queue: QUEUE, concurrency: 7 })
    worker.handle(work, async ({ payload }) => {
      if (payload === 'bad') throw new Error('no')
    })
    const payloads = ['good', 'good', 'bad']
    const ids = await tenantry.enqueueMany(payloads.map((payload) => ({ definition: work, payload, tenant: 'a' })))
    await worker.start()
    const seen = await until(
      async () => (await database.query(`select worker_id, queues, kinds, slots from ${database.quoted}.worker`))[0],
      { until: 'the worker is seen' },
    )
    expect(seen).toEqual({ worker_id: expect.any(String), queues: [QUEUE], kinds: ['work'], slots: 7 })
    for (const id of ids) {
      await until(async () => (await tenantry.job(id))?.finalizedAt, { until: 'the job has ended' })
    }
    await worker.stop()
    const after = await tenant('a')
    expect(after).toMatchObject({ started: 3, completed: 2, failed: 1, receivedShare: 1 })
    expect(after.waitMs?.p50).toBeGreaterThan(0)
    expect(after.runMs?.p50).toBeGreaterThan(0)
    expect(await tenantry.queues({ queue: QUEUE })).toMatchObject([{ workers: 0, slots: 0, started: 3 }])
  })

  test('counts jobs that complete in their own transaction', async () => {
    const { tenantry } = database
    const worker = tenantry.worker({ queue: QUEUE })
    worker.handle(work, (_, context) => context.transaction(async () => {}))
    const id = await tenantry.enqueue(work, null, { tenant: 'a' })
    await worker.start()
    await until(async () => (await tenantry.job(id))?.finalizedAt, { until: 'the job has ended' })
    await worker.stop()
    expect(await tenant('a')).toMatchObject({ started: 1, completed: 1, failed: 0 })
  })

  test('is forgotten by the others a minute after it was last seen', async () => {
    const store = numbersStore(database)
    const beat = (workerId: string) =>
      store.beat({ workerId, queues: [QUEUE], kinds: ['work'], slots: 1, running: 0, ageMs: 0 })
    await beat('dead')
    await beat('silent')
    await database.query(
      `update ${database.quoted}.worker set seen_at = now() - case worker_id when 'dead' then 61 else 59 end * interval '1 second'`,
    )
    await beat('alive')
    const left = await database.query(`select worker_id from ${database.quoted}.worker order by 1`)
    expect(left).toEqual([{ worker_id: 'alive' }, { worker_id: 'silent' }])
  })

  test('that was taken for dead is there again with its next beat, as old as it is', async () => {
    const store = numbersStore(database)
    const presence = { workerId: 'w', queues: [QUEUE], kinds: ['work'], slots: 1, running: 0, ageMs: 3_600_000 }
    await store.beat(presence)
    await database.query(`truncate ${database.quoted}.worker`)
    await store.beat(presence)
    const [row] = await database.query(
      `select now() - started_at > interval '59 minutes' as old from ${database.quoted}.worker`,
    )
    expect(row).toEqual({ old: true })
  })
})

test.each([
  [{ minutes: -1 }, 'expected minutes to be an integer from 0 to 60, got -1'],
  [{ minutes: Number.NaN }, 'expected minutes to be an integer from 0 to 60, got NaN'],
  [{ countMax: Number.POSITIVE_INFINITY }, 'expected countMax to be an integer from 1 to 100000000, got Infinity'],
  [{ sort: 'size' }, "expected sort to be one of 'backlog'"],
  [{ queue: '' }, 'expected queue to be a string'],
  [{ limit: 5 }, 'unknown option "limit" of tenants'],
])('refuses %j', async (options, message) => {
  await expect(database.tenantry.tenants(options as never)).rejects.toThrow(message)
})

test.each([
  ["tenants_v1('mail', 0)", 'expected the number of jobs to count to be from 1 to 100000000, got 0'],
  ["tenants_v1('mail', 1, 61)", 'expected the minutes to be from 0 to 60, got 61'],
  ["tenants_v1('mail', 1, null)", 'expected the minutes to be from 0 to 60, got null'],
])('SQL refuses %s', async (call, message) => {
  await expect(database.query(`select * from ${database.quoted}.${call}`)).rejects.toThrow(message)
})
