import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { countTenants, quantumOf } from '../support/fair-share.js'

const database = useSharedDatabase()

async function serve(queue: TestQueue, claims: number, size: number, kinds?: readonly string[]): Promise<string[]> {
  const served: string[] = []
  for (let n = 0; n < claims; n++) served.push(...(await queue.claim(size, kinds && { kinds })).tenants)
  return served
}

const QUIET = Array.from({ length: 10 }, (_, n) => `quiet-${n}`)

test.each(['a-noisy', 'z-noisy'])(
  'under saturation, slots that free one at a time go round all tenants, %s first or last by name (B10)',
  async (noisy) => {
    const queue = database.queue()
    await queue.enqueueMany(2_000, { tenant: noisy })
    await serve(queue, 50, 1)
    for (const tenant of QUIET) await queue.enqueueMany(20, { tenant })
    const served = await serve(queue, 200, 1)
    const counts = countTenants(served)
    // An eleventh of 200 is 18.2; equal weights differ by at most one job.
    for (const tenant of [noisy, ...QUIET]) expect(counts.get(tenant)).toBeGreaterThanOrEqual(17)
    const rest = await serve(queue, 22, 1)
    expect(QUIET.every((tenant) => [...served, ...rest].filter((each) => each === tenant).length === 20)).toBe(true)
  },
)

test('two tenants alternate job by job, also right after each finish and for a worker that starts anew (B11)', async () => {
  const name = database.queue().name
  await database.queue(name).enqueueMany(60, { tenant: 'a' })
  await database.queue(name).enqueueMany(20, { tenant: 'b' })
  const starts: string[] = []
  for (let worker = 0; worker < 4; worker++) {
    await using open = openStore(database.schema)
    const queue = new TestQueue(open.store, name)
    for (let n = 0; n < 10; n++) {
      const claim = await queue.claim(1)
      starts.push(...claim.tenants)
      await queue.settle(claim)
    }
  }
  const pairs = Array.from({ length: 20 }, (_, n) => starts.slice(2 * n, 2 * n + 2).sort())
  expect(pairs).toEqual(Array(20).fill(['a', 'b']))
})

test('a tenant that comes back after a long absence gets its share, not what it has missed', async () => {
  const queue = database.queue()
  await queue.enqueueMany(5, { tenant: 'returning' })
  await queue.enqueueMany(700, { tenant: 'steady' })
  await serve(queue, 500, 1)
  await queue.enqueueMany(100, { tenant: 'returning' })
  const counts = countTenants(await serve(queue, 100, 1))
  expect(counts.get('returning')).toBeGreaterThanOrEqual(49)
  expect(counts.get('returning')).toBeLessThanOrEqual(51)
})

test('a tenant that had the queue for itself owes nothing for it when another one comes', async () => {
  const queue = database.queue()
  await queue.enqueueMany(1_500, { tenant: 'alone' })
  await serve(queue, 10, 100)
  await queue.enqueueMany(300, { tenant: 'new' })
  const counts = countTenants(await serve(queue, 100, 1))
  expect(counts.get('alone')).toBeGreaterThanOrEqual(49)
  expect(counts.get('new')).toBeGreaterThanOrEqual(49)
})

test('a tenant that enqueues one job at a time gets its share, not the whole queue', async () => {
  const queue = database.queue()
  await queue.enqueueMany(300, { tenant: 'backlog' })
  const served: string[] = []
  for (let n = 0; n < 100; n++) {
    await queue.enqueue({ tenant: 'trickle' })
    served.push(...(await serve(queue, 1, 1)))
  }
  expect(countTenants(served).get('backlog')).toBeGreaterThanOrEqual(49)
})

test('neither a new kind nor one that is rarely used brings credit', async () => {
  const queue = database.queue()
  const kinds = ['daily', 'monthly']
  await queue.enqueueMany(3, { tenant: 'past', kind: 'monthly' })
  await serve(queue, 3, 1, kinds)
  for (const tenant of ['steady-1', 'steady-2']) await queue.enqueueMany(500, { tenant, kind: 'daily' })
  await serve(queue, 30, 20, kinds)
  for (const tenant of ['past', 'new']) await queue.enqueueMany(200, { tenant, kind: 'monthly' })
  const counts = countTenants(await serve(queue, 120, 1, kinds))
  // A fourth of 120, give or take a turn of the claims of 20 before.
  for (const tenant of ['steady-1', 'steady-2', 'past', 'new']) {
    expect(Math.abs((counts.get(tenant) ?? 0) - 30), tenant).toBeLessThanOrEqual(quantumOf(20))
  }
})

test('a kind that the workers have just learnt brings no credit to those who use it first', async () => {
  const queue = database.queue()
  await queue.enqueueMany(500, { tenant: 'steady', kind: 'daily' })
  await serve(queue, 20, 10, ['daily'])
  await queue.enqueueMany(200, { tenant: 'early', kind: 'brand-new' })
  const counts = countTenants(await serve(queue, 60, 1, ['daily', 'brand-new']))
  expect(Math.abs((counts.get('early') ?? 0) - 30)).toBeLessThanOrEqual(quantumOf(10))
})

test('it does not pay to spread one tenant’s jobs over many kinds', async () => {
  const queue = database.queue()
  const kinds = Array.from({ length: 8 }, (_, n) => `kind-${n}`)
  await queue.enqueueMany(200, { tenant: 'plain', kind: 'kind-0' })
  await queue.enqueue(...Array.from({ length: 400 }, (_, n) => ({ tenant: 'spread', kind: kinds[n % 8] as string })))
  const counts = countTenants(await serve(queue, 20, 10, kinds))
  expect(counts).toEqual(
    new Map([
      ['plain', 100],
      ['spread', 100],
    ]),
  )
})

test('weights divide the service: 4, 1 and 0.5', async () => {
  const queue = database.queue()
  const weights = { gold: 4, free: 1, trial: 0.5 }
  for (const [tenant, weight] of Object.entries(weights)) {
    await database.admin.configureTenant(queue.name, tenant, { weight })
    await queue.enqueueMany(600, { tenant })
  }
  const counts = countTenants(await serve(queue, 550, 1))
  expect(Math.abs((counts.get('gold') ?? 0) - 400)).toBeLessThanOrEqual(4)
  expect(Math.abs((counts.get('free') ?? 0) - 100)).toBeLessThanOrEqual(2)
  expect(Math.abs((counts.get('trial') ?? 0) - 50)).toBeLessThanOrEqual(1)
})

test('a weight acts on the backlog from the next claim on, whoever has changed it', async () => {
  const queue = database.queue()
  for (const tenant of ['a', 'b']) await queue.enqueueMany(500, { tenant })
  expect(countTenants(await serve(queue, 40, 1)).get('a')).toBe(20)
  await database.admin.configureTenant(queue.name, 'a', { weight: 9 })
  const after = countTenants(await serve(queue, 100, 1))
  expect(after.get('a')).toBeGreaterThanOrEqual(88)
  await database.query('delete from :schema.tenant where queue = $1', [queue.name])
  const again = countTenants(await serve(queue, 40, 1))
  expect(again.get('b')).toBeGreaterThanOrEqual(19)
})

test('a tenant of the smallest weight keeps the queue busy while nobody else has work', async () => {
  const queue = database.queue()
  await database.admin.configureTenant(queue.name, 'slow', { weight: 0.001 })
  await queue.enqueueMany(80, { tenant: 'slow' })
  expect(await serve(queue, 8, 10)).toHaveLength(80)
})

/** Turns of one claim: a batch is a few turns, and a claim of few jobs is turns of single jobs. */
function turnsOf(size: number): number {
  return Math.ceil(size / quantumOf(size))
}

test.each([1, 5, 20, 50])(
  'claims of %i: a new tenant has its first job after at most one turn of each tenant that was there before',
  async (size) => {
    const queue = database.queue()
    const others = Array.from({ length: 40 }, (_, n) => `other-${n}`)
    await queue.enqueue(...others.flatMap((tenant) => Array.from({ length: 120 }, () => ({ tenant }))))
    await serve(queue, 7, size)
    await queue.enqueue({ tenant: 'new' })
    const counts = new Map<string, number>()
    let claims = 0
    for (let waiting = true; waiting; claims++) {
      const { tenants } = await queue.claim(size)
      waiting = !tenants.includes('new')
      for (const [tenant, jobs] of waiting ? countTenants(tenants) : [])
        counts.set(tenant, (counts.get(tenant) ?? 0) + jobs)
    }
    expect(claims).toBeLessThanOrEqual(Math.floor(others.length / turnsOf(size)) + 1)
    expect(Math.max(0, ...counts.values())).toBeLessThanOrEqual(quantumOf(size))
  },
)

test('a tenant whose turn was cut because the batch was full goes on with the next claim', async () => {
  const queue = database.queue()
  // The empty lane of the first makes the claim of 9 look twice, and its second look is cut in the middle of a turn.
  for (const [tenant, jobs] of [
    ['e', 1],
    ['a', 7],
    ['f', 13],
  ] as const)
    await queue.enqueueMany(jobs, { tenant })
  for (const size of [1, 2, 9]) await queue.claim(size)
  expect(new Set((await queue.claim(4)).tenants)).toEqual(new Set(['a', 'f']))
})

test('a claim that looks several times gives no larger turns for it', async () => {
  const queue = database.queue()
  // The first two empty themselves in several looks; what is left of the batch, the others share.
  const tenants = { first: [0.1675, 9], second: [0.03, 14], third: [0.001, 20], fourth: [0.001, 20] } as const
  for (const [tenant, [weight, jobs]] of Object.entries(tenants)) {
    await database.admin.configureTenant(queue.name, tenant, { weight })
    await queue.enqueueMany(jobs, { tenant })
  }
  await queue.claim(4)
  const counts = countTenants((await queue.claim(32)).tenants)
  expect([...counts.values()].reduce((sum, jobs) => sum + jobs)).toBe(32)
  expect(Math.abs((counts.get('third') ?? 0) - (counts.get('fourth') ?? 0))).toBeLessThanOrEqual(quantumOf(32))
})

test('more new tenants than one claim folds in are all served within their round', async () => {
  const queue = database.queue()
  await queue.enqueueMany(1_000, { tenant: 'noisy' })
  await serve(queue, 2, 1)
  const tenants = Array.from({ length: 700 }, (_, n) => `t${n}`)
  for (const tenant of tenants.slice(0, 400)) await queue.enqueue({ tenant })
  await queue.enqueue(...tenants.slice(400).map((tenant) => ({ tenant })))
  // One turn for each of 700, and as long as it takes to hear of the last of them a few for the noisy one.
  const served = countTenants(await serve(queue, 36, 20))
  expect(served.size).toBe(701)
})

test('priority orders the jobs of a tenant and buys nothing among tenants', async () => {
  const queue = database.queue()
  await queue.enqueueMany(40, { tenant: 'urgent', priority: 1_000 })
  await queue.enqueueMany(40, { tenant: 'patient', priority: -1_000 })
  const counts = countTenants(await serve(queue, 10, 4))
  expect(Object.fromEntries(counts)).toEqual({ urgent: 20, patient: 20 })
})
