import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Entitlement } from './entitlement.js'
import { simulate } from './simulate.js'
import { WORKLOADS, workloadOf } from './workloads.js'

const SHAPE = { tenants: 20, jobs: 4_000, durationMs: 100, slots: 8, seed: 1 }
const OPTIONS = { slots: 8, batch: 8, charge: 'jobs' as const, tenants: new Map(), groups: new Map() }

describe('simulate', () => {
  test.each(WORKLOADS)(
    'every tenant of the %s workload gets what it is entitled to, unless the order is FIFO',
    (name) => {
      const { jobs, groups } = workloadOf(name, SHAPE)
      const tenants = new Map([...groups].map(([tenant, group]) => [tenant, { group }]))
      const { fair, fifo } = simulate(jobs, { ...OPTIONS, tenants })
      expect(fair.dispatches).toBe(jobs.length)
      expect(fifo.dispatches).toBe(jobs.length)
      expect(fair.jain).toBeGreaterThan(0.99)
      expect(fair.jain).toBeGreaterThanOrEqual((fifo.jain ?? 0) - 0.01)
    },
  )

  test('quiet tenants wait for seconds instead of for the backlog of the noisy one', () => {
    const { fair, fifo } = simulate(workloadOf('noisy', SHAPE).jobs, OPTIONS)
    const quiet = (figures: typeof fair) =>
      figures.tenants.find(({ tenant }) => tenant === 'tenant-2')?.waitMs?.p95 ?? 0
    expect(quiet(fair)).toBeLessThan(quiet(fifo) / 20)
  })

  test('splitting a backlog over many names gains something only without groups', () => {
    const { jobs, groups } = workloadOf('sybil', { ...SHAPE, tenants: 101 })
    const share = (tenants: ReadonlyMap<string, { group: string }>) =>
      simulate(jobs, { ...OPTIONS, tenants }).fair.tenants.find(({ tenant }) => tenant === 'honest')?.receivedShare
    expect(share(new Map([...groups].map(([tenant, group]) => [tenant, { group }])))).toBeCloseTo(0.5, 2)
    expect(share(new Map())).toBeCloseTo(1 / 101, 2)
  })

  test('the same seed gives the same run', () => {
    const run = () => simulate(workloadOf('bursty', SHAPE).jobs, OPTIONS)
    expect(run()).toEqual(run())
    expect(workloadOf('bursty', { ...SHAPE, seed: 2 })).not.toEqual(workloadOf('bursty', SHAPE))
  })

  test('a limit or a rate that leaves slots idle does not end the run', () => {
    const tenants = new Map([
      ['tenant-1', { concurrency: 1 }],
      ['tenant-2', { rate: { perSecond: 2, burst: 1 } }],
    ])
    const { fair } = simulate(workloadOf('noisy', { ...SHAPE, jobs: 400 }).jobs, { ...OPTIONS, tenants })
    expect(fair.dispatches).toBe(400)
  })
})

describe('entitlement', () => {
  test('is the fluid ideal: by weight among those that wait, groups first, and never more than was enqueued', () => {
    const parties = new Map([
      ['a', { weight: 3, group: undefined }],
      ['b', { weight: 1, group: 'g' }],
      ['c', { weight: 1, group: 'g' }],
    ])
    const entitlement = new Entitlement(parties, new Map([['g', 2]]))
    for (const tenant of ['a', 'b', 'c']) entitlement.arrive(tenant, 10)
    entitlement.serve(10)
    expect(['a', 'b', 'c'].map((tenant) => entitlement.of(tenant))).toEqual(
      [6, 2, 2].map((share) => expect.closeTo(share)),
    )
    entitlement.serve(20)
    expect(['a', 'b', 'c'].map((tenant) => entitlement.of(tenant))).toEqual(
      [10, 10, 10].map((share) => expect.closeTo(share)),
    )
  })

  test('gives out exactly what is served, whatever arrives', () => {
    const events = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 8 })),
      {
        minLength: 1,
        maxLength: 60,
      },
    )
    fc.assert(
      fc.property(events, (planned) => {
        const parties = new Map(
          ['a', 'b', 'c', 'd'].map((name, index) => [
            name,
            { weight: index + 0.5, group: index < 2 ? 'g' : undefined },
          ]),
        )
        const entitlement = new Entitlement(parties, new Map())
        let [waiting, served] = [0, 0]
        for (const [tenant, enqueued, work] of planned) {
          if (enqueued > 0) entitlement.arrive(tenant, enqueued)
          waiting += enqueued
          entitlement.serve(work)
          served += Math.min(work, waiting)
          waiting -= Math.min(work, waiting)
          const sum = [...parties.keys()].reduce((all, name) => all + entitlement.of(name), 0)
          expect(sum).toBeCloseTo(served, 6)
        }
      }),
      { numRuns: 500 },
    )
  })
})
