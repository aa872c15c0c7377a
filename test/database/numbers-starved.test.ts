import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openStore } from '../support/claims.js'
import { newJobs } from '../support/factory.js'
import { createTenantry } from '../support/tenantry.js'

const QUEUE = 'mail'
const KINDS = ['a', 'b']

const step = fc.oneof(
  fc.record({
    type: fc.constant('enqueue' as const),
    tenant: fc.integer({ min: 0, max: 7 }),
    kind: fc.constantFrom(...KINDS),
    jobs: fc.integer({ min: 1, max: 400 }),
  }),
  fc.record({
    type: fc.constant('claim' as const),
    count: fc.constantFrom(1, 3, 50, 500),
    kinds: fc.constantFrom(['a'], ['b'], KINDS),
  }),
)

/** Without any grace: whoever a claim passes over by more than a turn would be found, by the next look. */
test('no schedule of enqueues and claims starves anybody, with weights, groups and kinds', async () => {
  const schedules = fc.sample(
    fc.record({
      weights: fc.array(fc.constantFrom(0.1, 0.5, 1, 3, 100), { minLength: 8, maxLength: 8 }),
      groups: fc.array(fc.constantFrom(null, 'x', 'y'), { minLength: 8, maxLength: 8 }),
      steps: fc.array(step, { minLength: 20, maxLength: 40 }),
    }),
    { numRuns: 12, seed: 9 },
  )
  let served = 0
  for (const { weights, groups, steps } of schedules) {
    const database = await createTenantry()
    await using open = openStore(database)
    for (const [index, weight] of weights.entries()) {
      await database.tenantry.configureTenant(QUEUE, `tenant ${index}`, { weight, group: groups[index] ?? null })
    }
    for (const each of steps) {
      if (each.type === 'enqueue') {
        await open.store.enqueue(newJobs(each.jobs, { queue: QUEUE, tenant: `tenant ${each.tenant}`, kind: each.kind }))
      } else {
        const claim = await open.store.claim({
          queue: QUEUE,
          leaseId: crypto.randomUUID(),
          workerId: 'w',
          kinds: each.kinds,
          count: each.count,
          leaseMs: 60_000,
          listening: false,
        })
        served += claim.jobs.length
        const starved = await database.query(
          `select tenant, pass from ${database.quoted}.standing_v1($1, interval '0') where starved`,
          [QUEUE],
        )
        expect(starved).toEqual([])
      }
    }
  }
  expect(served).toBeGreaterThan(1_000)
})
