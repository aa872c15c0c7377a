import type { HistoryMode, Strategy } from '../settings/settings.js'
import type { Governance } from './governance.js'

/** One situation in which claiming and settling is measured. */
export interface Scenario {
  /** With the full sizes, also where `quick` reduces them. */
  readonly name: string
  /** Tenants whose jobs are queued, in turns. */
  readonly activeTenants: number
  /** Tenants that have settings and had work before, and have none now. */
  readonly idleTenants: number
  /** Jobs that wait when the measurement begins. */
  readonly backlog: number
  /** Jobs that finished before. */
  readonly historyJobs: number
  /** What becomes of the jobs that finish during the measurement. */
  readonly history: HistoryMode
  readonly connections: number
  /** Jobs asked for in one claim. */
  readonly batch: number
  /** Jobs claimed and settled in one run. */
  readonly jobs: number
  /** Whether each run begins with empty tables. Otherwise they are vacuumed, and filled up behind what is left. */
  readonly fresh: boolean
  readonly strategies: readonly Strategy[]
  /** Settings that make the claim look at more than the ring. */
  readonly governance?: Governance
  readonly targets: readonly Target[]
}

/** What can be compared: every figure is per job, except the throughput. */
export const METRICS = ['serverUsPerJob', 'walBytesPerJob', 'buffersPerJob', 'jobsPerSecond'] as const
export type Metric = (typeof METRICS)[number]

/** What the fair strategy has to reach, as a ratio of medians. Without a bound it is only reported. */
export interface Target {
  readonly metric: Metric
  /** FIFO in the same scenario, or in another one itself or FIFO. */
  readonly against: 'fifo' | { readonly scenario: string; readonly strategy?: 'fifo' }
  readonly most?: number
  readonly least?: number
}

/** The centre: one factor at a time is changed around it. */
const CENTRE = {
  activeTenants: 11,
  idleTenants: 0,
  historyJobs: 0,
  history: 'none',
  connections: 4,
  batch: 50,
  fresh: true,
  strategies: ['fifo', 'fair'],
} as const

/** Its cost grows with the number of tenants: with a thousand, one run would take minutes. */
const ROUND_ROBIN_TENANTS_MAX = 11

const MILLION = 1_000_000

function drain(activeTenants: number, most: number): Scenario {
  return {
    ...CENTRE,
    name: `tenants-${activeTenants}`,
    activeTenants,
    backlog: 50_000,
    jobs: 50_000,
    targets: [
      { metric: 'serverUsPerJob', against: 'fifo', most },
      { metric: 'buffersPerJob', against: 'fifo', most: 1.3 },
      { metric: 'walBytesPerJob', against: 'fifo', most: 1.3 },
    ],
  }
}

function manyConnections(batch: number, jobs: number): Scenario {
  return {
    ...CENTRE,
    name: `connections-64-batch-${batch}`,
    connections: 64,
    batch,
    backlog: jobs,
    jobs,
    targets: [{ metric: 'jobsPerSecond', against: 'fifo', least: 0.7 }],
  }
}

const BACKLOG_10K: Scenario = {
  ...CENTRE,
  name: 'backlog-10000',
  backlog: 10_000,
  jobs: 10_000,
  fresh: false,
  targets: [],
}

const HISTORY_KEPT: Scenario = {
  ...BACKLOG_10K,
  name: 'history-kept',
  history: 'keep',
  strategies: ['fair'],
}

const likeItself = (scenario: Scenario): readonly Target[] => [
  { metric: 'serverUsPerJob', against: { scenario: scenario.name }, most: 1.3 },
]

/** What settings cost: a drain that has them, beside the same without. `most` is for the ratio to FIFO. */
function governed(name: string, base: Scenario, governance: Governance, most?: number): Scenario {
  return {
    ...base,
    name,
    strategies: ['fair'],
    governance,
    targets: [
      { metric: 'serverUsPerJob', against: { scenario: base.name } },
      { metric: 'serverUsPerJob', against: { scenario: base.name, strategy: 'fifo' }, ...(most && { most }) },
    ],
  }
}

const TENANTS_11 = drain(11, 1.5)
const TENANTS_1000 = drain(1_000, 1.5)

/** Of everything, far more than there is. */
const PLENTY = MILLION
const RATE = { limit: PLENTY, burst: PLENTY }

const GOVERNED_11: readonly Scenario[] = [
  governed('weights-11', TENANTS_11, { weights: [1, 2, 3, 0.5, 5, 1.5, 8, 0.7, 10, 4, 2.5] }, 1.5),
  governed('limits-11', TENANTS_11, {
    queue: { concurrency: PLENTY, tenantConcurrency: PLENTY },
    kind: { concurrency: PLENTY },
  }),
  governed('rates-11', TENANTS_11, { queue: { rate: RATE, tenantRate: RATE }, kind: { rate: RATE } }),
  governed('time-11', TENANTS_11, { queue: { charge: 'time' } }),
  governed('keys-11', TENANTS_11, { keyed: true }),
]

const GOVERNED_1000: readonly Scenario[] = [
  governed('weights-1000', TENANTS_1000, { weights: [1, 2, 3, 0.5, 5, 1.5, 8, 0.7, 10, 4, 2.5] }, 1.5),
  governed('groups-100', TENANTS_1000, { groups: 100 }, 1.5),
  governed('groups-1', TENANTS_1000, { groups: 1 }, 1.5),
]

/** How many jobs each tenant at its limit has behind the one that runs. */
const PARKED_BACKLOG = 20

function parked(tenants: number, targets: readonly Target[]): Scenario {
  return {
    ...BACKLOG_10K,
    name: `parked-${tenants}`,
    strategies: ['fair'],
    governance: { parked: { tenants, backlog: PARKED_BACKLOG } },
    targets,
  }
}

/** As cheap as without them: what is parked costs a claim nothing. */
function parkedTo(base: Scenario, tenants: number): Scenario {
  return parked(tenants, [{ metric: 'serverUsPerJob', against: { scenario: base.name }, most: 1.1 }])
}

const PARKED_0 = parked(0, [])

/** The scenarios of one group are measured in turns, because they are compared with each other. */
export const SCENARIO_GROUPS: readonly (readonly Scenario[])[] = [
  [drain(1, 1.5)],
  [TENANTS_11, ...GOVERNED_11],
  [TENANTS_1000, ...GOVERNED_1000],
  [drain(50_000, 2.5)],
  [manyConnections(1, 3_000)],
  [manyConnections(10, 10_000)],
  [
    BACKLOG_10K,
    {
      ...BACKLOG_10K,
      name: 'backlog-1000000',
      backlog: MILLION,
      targets: likeItself(BACKLOG_10K),
    },
    {
      ...BACKLOG_10K,
      name: 'history-1000000',
      historyJobs: MILLION,
      targets: likeItself(BACKLOG_10K),
    },
    {
      ...BACKLOG_10K,
      name: 'idle-1000000',
      idleTenants: MILLION,
      targets: likeItself(BACKLOG_10K),
    },
    HISTORY_KEPT,
    {
      ...HISTORY_KEPT,
      name: 'history-kept-1000000',
      historyJobs: MILLION,
      targets: likeItself(HISTORY_KEPT),
    },
  ],
  [PARKED_0, parkedTo(PARKED_0, 100), parkedTo(PARKED_0, 10_000)],
]

export interface Selection {
  /** Names of scenarios; all of them when undefined. Those that they are compared with come along. */
  readonly only: readonly string[] | undefined
  readonly roundRobin: boolean
  /** Smaller sizes, for a first look. The targets are stated for the full sizes. */
  readonly quick: boolean
}

/** The groups that are to be measured. */
export function selectScenarios({ only, roundRobin, quick }: Selection): readonly (readonly Scenario[])[] {
  const wanted = only && new Set(only.flatMap((name) => [name, ...comparedWith(name)]))
  return SCENARIO_GROUPS.map((group) => group.filter(({ name }) => wanted?.has(name) ?? true))
    .filter((group) => group.length > 0)
    .map((group) => group.map((scenario) => adapted(scenario, { roundRobin, quick })))
}

export function scenarioNames(): readonly string[] {
  return SCENARIO_GROUPS.flat().map(({ name }) => name)
}

function comparedWith(name: string): readonly string[] {
  const targets = SCENARIO_GROUPS.flat().find((scenario) => scenario.name === name)?.targets ?? []
  return targets.flatMap(({ against }) => (against === 'fifo' ? [] : [against.scenario]))
}

function adapted(scenario: Scenario, { roundRobin, quick }: Omit<Selection, 'only'>): Scenario {
  const sized = quick ? reduced(scenario) : scenario
  const isDrain = sized.fresh && sized.connections === CENTRE.connections
  const cheapEnough = isDrain && !sized.governance && sized.activeTenants <= ROUND_ROBIN_TENANTS_MAX
  return roundRobin && cheapEnough ? { ...sized, strategies: [...sized.strategies, 'round-robin'] } : sized
}

/** A fifth of the jobs of a drain and a tenth of what lies around. */
function reduced(scenario: Scenario): Scenario {
  const { activeTenants, idleTenants, historyJobs, backlog, jobs, governance } = scenario
  const { parked: many } = governance ?? {}
  return {
    ...scenario,
    ...(many && { governance: { ...governance, parked: { ...many, tenants: many.tenants / 10 } } }),
    activeTenants: activeTenants === backlog ? backlog / 5 : activeTenants,
    idleTenants: idleTenants / 10,
    historyJobs: historyJobs / 10,
    backlog: backlog === MILLION ? backlog / 10 : backlog / 5,
    jobs: jobs / 5,
  }
}
