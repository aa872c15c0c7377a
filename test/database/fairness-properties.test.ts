import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TestQueue, useSharedDatabase } from '../support/claims.js'
import { breaches, countTenants, type Step, type Weights } from '../support/fair-share.js'

const database = useSharedDatabase()

const TENANTS = ['a', 'b', 'c', 'd', 'e', 'f']
const KINDS = ['k1', 'k2']

interface Arrival {
  readonly type: 'arrival'
  readonly tenant: string
  readonly jobs: number
  readonly kind: string
}

interface Asked {
  readonly type: 'claim'
  readonly asked: number
}

const arrival: fc.Arbitrary<Arrival> = fc.record({
  type: fc.constant('arrival' as const),
  tenant: fc.constantFrom(...TENANTS),
  jobs: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 60 })),
  kind: fc.constantFrom(...KINDS),
})

const claim: fc.Arbitrary<Asked> = fc.record({
  type: fc.constant('claim' as const),
  asked: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 45 })),
})

/** More claims than arrivals, since an arrival brings many jobs. */
const schedule = fc.array(fc.oneof({ weight: 1, arbitrary: arrival }, { weight: 3, arbitrary: claim }), {
  minLength: 10,
  maxLength: 80,
  size: 'max',
})

async function run(queue: TestQueue, planned: readonly (Arrival | Asked)[], kinds: readonly string[]): Promise<Step[]> {
  const steps: Step[] = []
  for (const step of planned) {
    if (step.type === 'arrival') {
      const { tenant, jobs, kind } = step
      await queue.enqueueMany(jobs, { tenant, kind: kinds.includes(kind) ? kind : (kinds[0] as string) })
      steps.push({ type: 'arrival', tenant, jobs })
    } else {
      const { tenants } = await queue.claim(step.asked, { kinds })
      steps.push({ type: 'claim', asked: step.asked, served: countTenants(tenants) })
    }
  }
  return steps
}

/** The limit ends the search for a smaller counterexample before the test runner ends the test. */
const RUNS = { numRuns: 25, interruptAfterTimeLimit: 40_000 }

test('the check finds that first in, first out is not fair', async () => {
  const property = fc.asyncProperty(schedule, async (planned) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy: 'fifo' })
    return breaches(await run(queue, planned, ['k1'])).length === 0
  })
  expect((await fc.check(property, { ...RUNS, endOnFailure: true })).failed).toBe(true)
})

test('shares, first turns and work conservation hold whatever arrives and is claimed', async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (planned) => {
      expect(breaches(await run(database.queue(), planned, ['k1']))).toEqual([])
    }),
    RUNS,
  )
})

test('they hold for the tenant as a whole when it has jobs of several kinds', async () => {
  await fc.assert(
    fc.asyncProperty(schedule, async (planned) => {
      expect(breaches(await run(database.queue(), planned, KINDS))).toEqual([])
    }),
    RUNS,
  )
})

const weight = fc.oneof(fc.constantFrom(0.001, 0.5, 1, 2, 1_000), fc.double({ min: 0.001, max: 1_000, noNaN: true }))

test('they hold for any weights from 0.001 to 1,000', async () => {
  const weights = fc.tuple(...TENANTS.map((tenant) => weight.map((value) => [tenant, value] as const)))
  await fc.assert(
    fc.asyncProperty(schedule, weights, fc.constantFrom(['k1'], KINDS), async (planned, given, kinds) => {
      const queue = database.queue()
      for (const [tenant, value] of given) await database.admin.configureTenant(queue.name, tenant, { weight: value })
      const checked: Weights = new Map(given)
      expect(breaches(await run(queue, planned, kinds), checked)).toEqual([])
    }),
    RUNS,
  )
})
