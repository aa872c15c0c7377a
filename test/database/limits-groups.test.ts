import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HeldClaim, useSharedDatabase } from '../support/claims.js'
import { countTenants } from '../support/fair-share.js'
import { expectRingSound, LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

/** What each of these names got, all jobs settled at once, until so many have started. */
async function starts(limited: LimitedQueue, jobs: number, { count = 4, kinds = ['send-invoice'] } = {}) {
  const tenants: string[] = []
  while (tenants.length < jobs) {
    const claim = await limited.queue.claim(count, { kinds })
    expect(claim.ids.length, 'jobs of a claim').toBeGreaterThan(0)
    tenants.push(...claim.tenants)
    await limited.queue.settle(claim)
  }
  return countTenants(tenants)
}

function total(counts: ReadonlyMap<string, number>, prefix: string): number {
  return [...counts].reduce((sum, [tenant, jobs]) => sum + (tenant.startsWith(prefix) ? jobs : 0), 0)
}

async function grouped(members: Readonly<Record<string, readonly string[]>>): Promise<LimitedQueue> {
  const limited = new LimitedQueue(database)
  for (const [group, tenants] of Object.entries(members)) {
    for (const tenant of tenants) await limited.setTenant(tenant, { group })
  }
  return limited
}

describe('groups', () => {
  test('a hundred tenants of one group gain nothing against one alone', async () => {
    const sybils = Array.from({ length: 100 }, (_, n) => `sybil${n}`)
    const limited = await grouped({ sybils })
    for (const tenant of sybils) await limited.queue.enqueueMany(5, { tenant })
    await limited.queue.enqueueMany(200, { tenant: 'lone' })
    const counts = await starts(limited, 200)
    expect(Math.abs((counts.get('lone') ?? 0) - 100)).toBeLessThanOrEqual(2)
    expect(Math.max(...[...counts].filter(([name]) => name !== 'lone').map(([, jobs]) => jobs))).toBeLessThanOrEqual(2)
    await expectRingSound(database, limited.name)
  })

  test('share by their weights first, and their tenants by theirs inside', async () => {
    const limited = await grouped({ gold: ['g1', 'g2'], silver: ['s1', 's2', 's3'] })
    await limited.setGroup('gold', { weight: 3 })
    await limited.setTenant('g2', { weight: 2 })
    for (const tenant of ['g1', 'g2', 's1', 's2', 's3', 'lone']) await limited.queue.enqueueMany(300, { tenant })
    const counts = await starts(limited, 450)
    expect(Math.abs(total(counts, 'g') - 270)).toBeLessThanOrEqual(6)
    expect(Math.abs(total(counts, 's') - 90)).toBeLessThanOrEqual(6)
    expect(Math.abs((counts.get('lone') ?? 0) - 90)).toBeLessThanOrEqual(6)
    expect(Math.abs((counts.get('g2') ?? 0) - 180)).toBeLessThanOrEqual(6)
    for (const tenant of ['s1', 's2', 's3']) expect(Math.abs((counts.get(tenant) ?? 0) - 30)).toBeLessThanOrEqual(4)
  })

  test('take a tenant with its backlog when it is moved, and the shares change from then on', async () => {
    const limited = await grouped({ g: ['a', 'b'] })
    for (const tenant of ['a', 'b', 'lone']) await limited.queue.enqueueMany(400, { tenant })
    const before = await starts(limited, 120)
    expect(Math.abs((before.get('lone') ?? 0) - 60)).toBeLessThanOrEqual(3)
    await limited.setTenant('b', { group: null })
    const after = await starts(limited, 120)
    for (const tenant of ['a', 'b', 'lone']) expect(Math.abs((after.get(tenant) ?? 0) - 40)).toBeLessThanOrEqual(3)
    await limited.setTenant('lone', { group: 'g' })
    const last = await starts(limited, 120)
    expect(Math.abs((last.get('b') ?? 0) - 60)).toBeLessThanOrEqual(3)
    expect(Math.abs((last.get('a') ?? 0) - 30)).toBeLessThanOrEqual(3)
    await expectRingSound(database, limited.name)
  })

  test('cost nobody anything while all their tenants are parked, and come back without credit', async () => {
    const limited = await grouped({ g: ['a', 'b'] })
    for (const tenant of ['a', 'b', 'lone']) await limited.queue.enqueueMany(400, { tenant })
    await starts(limited, 12)
    for (const tenant of ['a', 'b']) await limited.pause({ tenant })
    const alone = await starts(limited, 100)
    expect(alone).toEqual(new Map([['lone', alone.get('lone')]]))
    await expectRingSound(database, limited.name)
    for (const tenant of ['a', 'b']) await limited.resume({ tenant })
    const back = await starts(limited, 80)
    expect(Math.abs((back.get('lone') ?? 0) - 40)).toBeLessThanOrEqual(4)
  })

  test('share across several kinds, and among workers that know only some', async () => {
    const limited = await grouped({ g: ['g1', 'g2', 'g3'] })
    const kinds = ['k1', 'k2']
    for (const kind of kinds) {
      for (const tenant of ['g1', 'g2', 'g3', 'lone']) await limited.queue.enqueueMany(200, { tenant, kind })
    }
    const both = await starts(limited, 160, { kinds })
    expect(Math.abs((both.get('lone') ?? 0) - 80)).toBeLessThanOrEqual(4)
    const one = await starts(limited, 160, { kinds: ['k2'] })
    expect(Math.abs((one.get('lone') ?? 0) - 80)).toBeLessThanOrEqual(4)
    await expectRingSound(database, limited.name)
  })

  test('keep to the limits of their tenants, and fill the batch from whom else there is', async () => {
    const limited = await grouped({ g: ['a', 'b'] })
    await limited.setTenant('a', { concurrency: 2 })
    await limited.setTenant('b', { concurrency: 3 })
    for (const tenant of ['a', 'b', 'lone']) await limited.queue.enqueueMany(100, { tenant })
    const claim = await limited.queue.claim(50)
    expect(Object.fromEntries(countTenants(claim.tenants))).toEqual({ a: 2, b: 3, lone: 45 })
    await expectRingSound(database, limited.name)
  })
})

type Step =
  | {
      readonly do: 'enqueue'
      readonly tenant: string
      readonly kind: string
      readonly jobs: number
      readonly key?: string
    }
  | { readonly do: 'claim'; readonly count: number; readonly kinds: readonly string[] }
  | { readonly do: 'end'; readonly as: 'complete' | 'release' }
  | { readonly do: 'group'; readonly tenant: string; readonly group: string | null }
  | { readonly do: 'limit'; readonly tenant: string; readonly concurrency: number | null }
  | { readonly do: 'pause' | 'resume'; readonly scope: { readonly tenant: string } | { readonly kind: string } }

const KINDS = ['k1', 'k2', 'k3']
const tenant = fc.constantFrom('a', 'b', 'c', 'd', 'e')
const kind = fc.constantFrom(...KINDS)
const jobs = fc.integer({ min: 1, max: 8 })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('enqueue' as const), tenant, kind, jobs }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('enqueue' as const), tenant, kind, jobs, key: fc.constantFrom('x', 'y') }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      count: fc.integer({ min: 1, max: 20 }),
      kinds: fc.subarray(KINDS, { minLength: 1 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      as: fc.constantFrom('complete' as const, 'release' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('group' as const), tenant, group: fc.constantFrom('g', 'h', null) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('limit' as const), tenant, concurrency: fc.constantFrom(0, 1, 3, null) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('pause' as const, 'resume' as const),
      scope: fc.oneof(fc.record({ tenant }), fc.record({ kind })),
    }),
  },
)

test('whatever happens, a node is ready exactly if a lane of it is, and every job is found in the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
      const limited = new LimitedQueue(database)
      const held: HeldClaim[] = []
      for (const each of steps) {
        await perform(limited, held, each)
        if (each.do === 'claim') await expectRingSound(database, limited.name)
      }
      for (const each of held) await limited.queue.settle(each)
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await limited.resume({ tenant: name })
        await limited.setTenant(name, { concurrency: null })
      }
      for (const name of KINDS) await limited.resume({ kind: name })
      for (let round = 0; (await limited.left()) > 0; round += 1) {
        expect(round, 'jobs are left that no claim finds').toBeLessThan(200)
        const claim = await limited.queue.claim(20, { kinds: KINDS })
        await limited.queue.settle(claim)
        if (claim.ids.length === 0) await limited.age(0.5)
      }
      await expectRingSound(database, limited.name)
    }),
    { numRuns: 12, interruptAfterTimeLimit: 20_000 },
  )
})

async function perform(limited: LimitedQueue, held: HeldClaim[], each: Step): Promise<void> {
  if (each.do === 'enqueue') {
    const { do: _, jobs: count, ...job } = each
    await limited.queue.enqueueMany(count, job)
  } else if (each.do === 'claim') {
    held.push(await limited.queue.claim(each.count, { kinds: each.kinds }))
  } else if (each.do === 'end') {
    const claim = held.shift()
    if (claim) await limited.queue.settle(claim, { type: each.as })
  } else if (each.do === 'group') await limited.setTenant(each.tenant, { group: each.group })
  else if (each.do === 'limit') await limited.setTenant(each.tenant, { concurrency: each.concurrency })
  else await limited[each.do](each.scope)
}
