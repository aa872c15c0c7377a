import { describe, expect, test } from 'vitest'
import { type ClaimOptions, openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

const HOUR = { limit: 1, per_ms: 3_600_000 }

interface Scope {
  readonly scope: string
  readonly limit: (limited: LimitedQueue, rate: unknown) => Promise<void>
  /** The same for all jobs of the scope. */
  readonly job: { readonly key?: string }
}

const anyNumber = { key_concurrency: 1_000_000 }

const SCOPES: readonly Scope[] = [
  { scope: 'a queue', limit: (limited, rate) => limited.set({ rate }), job: {} },
  { scope: 'a tenant', limit: (limited, rate) => limited.setTenant('acme', { rate }), job: {} },
  { scope: 'each tenant', limit: (limited, rate) => limited.set({ tenant_rate: rate }), job: {} },
  { scope: 'a kind', limit: (limited, rate) => limited.setKind('send-invoice', { rate }), job: {} },
  {
    scope: 'a key',
    limit: async (limited, rate) => {
      await limited.set(anyNumber)
      await limited.setKey('k', { rate })
    },
    job: { key: 'k' },
  },
  { scope: 'each key', limit: (limited, rate) => limited.set({ ...anyNumber, key_rate: rate }), job: { key: 'k' } },
  {
    scope: 'a FIFO queue',
    limit: (limited, rate) => limited.set({ strategy: 'fifo', rate }),
    job: {},
  },
  {
    scope: 'a key of a round-robin queue',
    limit: (limited, rate) => limited.set({ strategy: 'round-robin', ...anyNumber, key_rate: rate }),
    job: { key: 'k' },
  },
]

describe.each(SCOPES)('the rate of $scope', ({ limit, job }) => {
  test('is exceeded in no window, whichever, though four connections claim at once', async () => {
    const limited = new LimitedQueue(database)
    const rate = { limit: 200, per_ms: 1_000, burst: 10 }
    await limit(limited, rate)
    await limited.queue.enqueueMany(90, job)
    await Promise.all(Array.from({ length: 4 }, (_, nth) => drain(limited.name, nth)))
    const starts = await database.query<{ at: number }>(
      `select extract(epoch from claimed_at)::float8 as at from :schema.job_history where queue = $1 order by claimed_at`,
      [limited.name],
    )
    expect(starts).toHaveLength(90)
    expect(
      tooManyIn(
        starts.map(({ at }) => at),
        rate,
      ),
    ).toEqual([])
    await expectSound(database)
  })

  test('lets a burst start after a rest and not more, and tells when the next one may', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, { ...HOUR, burst: 3 })
    await limited.queue.enqueueMany(20, job)
    const first = await limited.queue.claim(10)
    expect(first.ids).toHaveLength(3)
    const none = await limited.queue.claim(10)
    expect(none.ids).toEqual([])
    expect(none.nextDueMs).toBeGreaterThan(3_500_000)
    expect(none.nextDueMs).toBeLessThanOrEqual(3_600_000)
    await limited.age(3_590)
    expect((await limited.queue.claim(10)).ids).toEqual([])
    await limited.age(20)
    expect((await limited.queue.claim(10)).ids).toHaveLength(1)
    expect((await limited.queue.claim(10)).ids).toEqual([])
    await limited.age(1_000_000)
    expect((await limited.queue.claim(2)).ids).toHaveLength(2)
    expect((await limited.queue.claim(10)).ids).toHaveLength(1)
  })

  test('holds no slot and uses up no attempt while a job waits', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, { ...HOUR, burst: 1 })
    const ids = await limited.queue.enqueueMany(3, job)
    await limited.queue.settle(await limited.queue.claim(10))
    for (let n = 0; n < 3; n += 1) await limited.queue.claim(10)
    expect(await limited.queue.record(ids[1])).toMatchObject({ attempt: 0, errors: [] })
    expect(await database.query('select id from :schema.lease where queue = $1', [limited.name])).toEqual([])
  })

  test('acts at once when it is changed, whatever was taken at the old one', async () => {
    const limited = new LimitedQueue(database)
    await limit(limited, { limit: 1, per_ms: 86_400_000, burst: 1 })
    await limited.queue.enqueueMany(30, job)
    expect((await limited.queue.claim(10)).ids).toHaveLength(1)
    expect((await limited.queue.claim(10)).ids).toEqual([])
    await limit(limited, { limit: 1, per_ms: 60_000, burst: 2 })
    const none = await limited.queue.claim(10)
    expect(none.ids.length, 'no more than the new burst').toBeLessThanOrEqual(1)
    await limited.age(61)
    expect((await limited.queue.claim(10)).ids.length, 'a token of the new rate').toBeGreaterThanOrEqual(1)
    await limit(limited, { ...HOUR, burst: 1 })
    await limited.queue.claim(10)
    expect((await limited.queue.claim(10)).ids).toEqual([])
    await limit(limited, null)
    const rest = await limited.queue.claim(30)
    expect(rest.ids.length).toBeGreaterThan(20)
    expect(await limited.running()).toEqual({ [limited.name]: 30 })
  })
})

test('a job that waits for a slot of its key, not for a token, does not have workers ask again and again (B101)', async () => {
  const limited = new LimitedQueue(database)
  await limited.setKey('k', { rate: { limit: 100, per_ms: 1_000, burst: 100 } })
  await limited.queue.enqueueMany(5, { key: 'k' })
  const running = await limited.queue.claim(10)
  expect(running.ids).toHaveLength(1)
  for (let n = 0; n < 2; n += 1) expect((await limited.queue.claim(10)).nextDueMs).toBeUndefined()
  await limited.queue.settle(running)
  expect((await limited.queue.claim(10)).ids).toHaveLength(1)
})

test('where several rates bind, none is exceeded and what one holds back takes no token of another', async () => {
  const limited = new LimitedQueue(database)
  await limited.set({ rate: { ...HOUR, burst: 10 } })
  await limited.setTenant('slow', { rate: { ...HOUR, burst: 2 } })
  await limited.setKind('rare', { rate: { ...HOUR, burst: 3 } })
  const kinds = { kinds: ['send-invoice', 'rare'] }
  await limited.queue.enqueueMany(20, { tenant: 'slow', kind: 'rare' })
  await limited.queue.enqueueMany(20, { tenant: 'other', kind: 'rare' })
  expect((await limited.queue.claim(20, kinds)).ids).toHaveLength(3)
  await limited.queue.enqueueMany(20, { tenant: 'slow' })
  await limited.queue.enqueueMany(20, { tenant: 'free' })
  await limited.queue.claim(20, kinds)
  const running = await limited.running('tenant')
  expect(running['slow']).toBe(2)
  expect(await limited.running()).toEqual({ [limited.name]: 10 })
})

/** A worker that claims and completes until nothing is left, and sleeps for as long as it is told. */
async function drain(name: string, nth: number, options: ClaimOptions = {}): Promise<void> {
  await using open = openStore(database.schema)
  const queue = new TestQueue(open.store, name)
  const left = () => database.value<number>('select count(*)::int from :schema.job where queue = $1', [name])
  for (let n = nth; (await left()) > 0; n += 1) await queue.settle(await queue.claim(1 + (n % 7), options))
}

/** Windows in which more started than the rate allows. */
function tooManyIn(starts: readonly number[], rate: { readonly limit: number; readonly burst: number }): string[] {
  return starts.flatMap((from, first) =>
    starts.slice(first).flatMap((to, more) => {
      const most = rate.burst + (to - from) * rate.limit
      return more + 1 <= most + 1e-3 ? [] : [`${more + 1} started within ${to - from} s, at most ${most} may`]
    }),
  )
}
