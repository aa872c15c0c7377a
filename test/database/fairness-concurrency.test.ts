import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { breaches, countTenants, type Step } from '../support/fair-share.js'

const database = useSharedDatabase()

const CONNECTIONS = 8
const TENANTS = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const WEIGHTS = new Map([
  ['b', 0.5],
  ['c', 3],
])

/** Claims by many connections at once, with enqueues and settlements in between. Answers with nothing: the database knows. */
async function work(name: string, seed: number, claims: number): Promise<void> {
  await using open = openStore(database.schema)
  const queue = new TestQueue(open.store, name)
  for (let n = 0; n < claims; n++) {
    const claim = await queue.claim(1 + ((seed * 7 + n * 5) % 24))
    if (n % 3 === 0) await queue.enqueueMany(5, { tenant: TENANTS[(seed + n) % TENANTS.length] as string })
    await queue.settle(claim)
  }
}

test('shares are exact although eight connections claim, settle and enqueue at once', async () => {
  const { name } = database.queue()
  for (const [tenant, weight] of WEIGHTS) await database.admin.configureTenant(name, tenant, { weight })
  const steps: Step[] = []
  for (const tenant of TENANTS) {
    await database.queue(name).enqueueMany(1_500, { tenant })
    // What is added meanwhile never matters: nobody runs out.
    steps.push({ type: 'arrival', tenant, jobs: 1_000_000 })
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, seed) => work(name, seed, 40)))

  // A claim stamps its jobs under the queue's lock, so the stamps are in the order of the claims.
  const claims = await database.query<{ tenants: string[] }>(
    `select array_agg(tenant) as tenants from (
       select claimed_at, tenant from :schema.job_history where queue = $1
     ) as claimed group by claimed_at order by claimed_at`,
    [name],
  )
  expect(claims).toHaveLength(CONNECTIONS * 40)
  for (const { tenants } of claims) steps.push({ type: 'claim', asked: tenants.length, served: countTenants(tenants) })
  expect(breaches(steps, WEIGHTS)).toEqual([])
})

test('no claim is falsely empty when there are more workers than tenants', async () => {
  const { name } = database.queue()
  const ids = await database.queue(name).enqueueMany(400, { tenant: 'only' })
  const claimed: string[] = []
  const drain = async () => {
    await using open = openStore(database.schema)
    const queue = new TestQueue(open.store, name)
    for (;;) {
      const claim = await queue.claim(3)
      if (claim.ids.length === 0) {
        // All are taken, at this moment and not only by the time that everybody has finished.
        const left = `select count(*)::int from :schema.job where queue = $1 and state = 'available'`
        expect(await database.value(left, [name])).toBe(0)
        return
      }
      claimed.push(...claim.ids)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, drain))
  expect(claimed.sort()).toEqual(ids.sort())
})
