import { describe, expect, it } from 'vitest'
import type { RunFigures } from './measure.js'
import { SCENARIO_GROUPS, type Scenario, scenarioNames, selectScenarios } from './scenarios.js'
import { comparisonsOf, median, resultOf } from './summary.js'

const [scenario] = SCENARIO_GROUPS.flat() as [Scenario]

function run(figures: Partial<RunFigures>): RunFigures {
  return {
    jobs: 100,
    serverUsPerJob: 40,
    vacuumUsPerJob: 1,
    walBytesPerJob: 800,
    buffersPerJob: 20,
    jobsPerSecond: 10_000,
    claimMs: { p50: 1, p95: 2, p99: 3 },
    emptyClaims: 0,
    lateClaims: 0,
    ...figures,
  }
}

describe('resultOf', () => {
  it('holds medians with the smallest and the largest of the runs', () => {
    const runs = [run({ serverUsPerJob: 90 }), run({ serverUsPerJob: 30 }), run({ serverUsPerJob: 40 })]
    const result = resultOf({ scenario, strategy: 'fair', runs })
    expect(result).toMatchObject({ scenario: scenario.name, strategy: 'fair', runs: 3, serverUsPerJob: 40 })
    expect(result.spread.serverUsPerJob).toEqual({ min: 30, max: 90 })
  })

  it('says null where the server did not let itself be seen', () => {
    const result = resultOf({ scenario, strategy: 'fair', runs: [run({ serverUsPerJob: null })] })
    expect(result.serverUsPerJob).toBeNull()
    expect(result.spread.serverUsPerJob).toBeNull()
  })
})

describe('comparisonsOf', () => {
  const row = (strategy: 'fair' | 'fifo', figures: Partial<RunFigures>, of = scenario) =>
    resultOf({ scenario: of, strategy, runs: [run(figures)] })

  it('puts the ratio of fair to FIFO beside the target', () => {
    const targets = [{ metric: 'serverUsPerJob', against: 'fifo', most: 1.5 }] as const
    const rows = [row('fifo', { serverUsPerJob: 40 }), row('fair', { serverUsPerJob: 60 })]
    expect(comparisonsOf([{ ...scenario, targets }], rows)).toEqual([
      { scenario: scenario.name, metric: 'serverUsPerJob', against: 'fifo', ratio: 1.5, most: 1.5, met: true },
    ])
  })

  it('puts the ratio of fair to itself beside the target', () => {
    const other = { ...scenario, name: 'other' }
    const targets = [{ metric: 'serverUsPerJob', against: { scenario: 'other' }, most: 1.3 }] as const
    const rows = [row('fair', { serverUsPerJob: 28 }), row('fair', { serverUsPerJob: 20 }, other)]
    expect(comparisonsOf([{ ...scenario, targets }], rows)).toMatchObject([
      { against: 'other', ratio: 1.4, met: false },
    ])
  })

  it('misses a throughput that is too small', () => {
    const targets = [{ metric: 'jobsPerSecond', against: 'fifo', least: 0.7 }] as const
    const rows = [row('fifo', { jobsPerSecond: 1_000 }), row('fair', { jobsPerSecond: 600 })]
    expect(comparisonsOf([{ ...scenario, targets }], rows)).toMatchObject([{ ratio: 0.6, least: 0.7, met: false }])
  })

  it('reports a ratio that has no bound, also to FIFO in another scenario', () => {
    const other = { ...scenario, name: 'other' }
    const targets = [
      { metric: 'serverUsPerJob', against: { scenario: 'other' } },
      { metric: 'serverUsPerJob', against: { scenario: 'other', strategy: 'fifo' }, most: 1.5 },
    ] as const
    const rows = [
      row('fair', { serverUsPerJob: 30 }),
      row('fifo', { serverUsPerJob: 15 }, other),
      row('fair', { serverUsPerJob: 20 }, other),
    ]
    expect(comparisonsOf([{ ...scenario, targets }], rows)).toEqual([
      { scenario: scenario.name, metric: 'serverUsPerJob', against: 'other', ratio: 1.5, met: null },
      { scenario: scenario.name, metric: 'serverUsPerJob', against: 'fifo in other', ratio: 2, most: 1.5, met: false },
    ])
  })

  it('leaves open what could not be measured', () => {
    const targets = [{ metric: 'serverUsPerJob', against: 'fifo', most: 1.5 }] as const
    const rows = [row('fifo', { serverUsPerJob: null }), row('fair', { serverUsPerJob: null })]
    expect(comparisonsOf([{ ...scenario, targets }], rows)).toMatchObject([{ ratio: null, met: null }])
  })
})

describe('median', () => {
  it.each([
    [[], null],
    [[7], 7],
    [[9, 1, 10], 9],
    [[4, 1, 3, 2], 2.5],
  ])('of %j is %j', (values, expected) => {
    expect(median(values)).toBe(expected)
  })
})

describe('selectScenarios', () => {
  it('measures everything unless told otherwise', () => {
    expect(selectScenarios({ only: undefined, roundRobin: false, quick: false })).toEqual(SCENARIO_GROUPS)
  })

  it('brings along what a scenario is compared with, in the same group', () => {
    const groups = selectScenarios({ only: ['idle-1000000'], roundRobin: false, quick: false })
    expect(groups.map((group) => group.map(({ name }) => name))).toEqual([['backlog-10000', 'idle-1000000']])
  })

  it('has for every comparison what it is compared with', () => {
    for (const { name, targets } of SCENARIO_GROUPS.flat()) {
      const selected = selectScenarios({ only: [name], roundRobin: false, quick: false }).flat()
      for (const { against } of targets) {
        const other = against === 'fifo' ? { scenario: name, strategy: 'fifo' } : { strategy: 'fair', ...against }
        const found = selected.find((each) => each.name === other.scenario)
        expect(found?.strategies).toContain(other.strategy)
      }
    }
  })

  it('has round robin only where its cost is bearable', () => {
    const scenarios = selectScenarios({ only: undefined, roundRobin: true, quick: false }).flat()
    const withIt = scenarios.filter(({ strategies }) => strategies.includes('round-robin'))
    expect(withIt.map(({ name }) => name)).toEqual(['tenants-1', 'tenants-11'])
  })

  it('keeps the names and reduces the sizes of a quick run', () => {
    const quick = selectScenarios({ only: undefined, roundRobin: false, quick: true }).flat()
    expect(quick.map(({ name }) => name)).toEqual(scenarioNames())
    const full = SCENARIO_GROUPS.flat()
    expect(quick.every(({ jobs }, index) => jobs < (full[index]?.jobs ?? 0))).toBe(true)
    expect(quick.every(({ jobs, backlog }) => jobs <= backlog)).toBe(true)
  })
})
