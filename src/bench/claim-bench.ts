import { BareSubject } from './bare-subject.js'
import { type BenchEnvironment, environmentOf } from './environment.js'
import { type MeasureOptions, measureRun, type RunFigures } from './measure.js'
import type { Scenario } from './scenarios.js'
import type { BenchServer } from './server.js'
import type { Subject } from './subject.js'
import { type Comparison, comparisonsOf, type ResultRow, resultOf } from './summary.js'
import { TenantrySubject } from './tenantry-subject.js'

export interface ClaimBenchOptions {
  /** The scenarios of one group are measured in turns. */
  readonly groups: readonly (readonly Scenario[])[]
  readonly runs: number
  readonly signal: AbortSignal
  readonly say: (what: string) => void
  readonly onStep?: (step: ClaimBenchStep) => void
}

/** What is being done now, for a progress display. */
export interface ClaimBenchStep {
  readonly scenario: string
  readonly strategy: string
  /** Undefined while the data is prepared. */
  readonly run?: number
  /** Runs done and to be done, over all scenarios. */
  readonly done: number
  readonly total: number
}

export interface ClaimBenchResult {
  readonly results: readonly ResultRow[]
  readonly comparisons: readonly Comparison[]
  readonly environment: BenchEnvironment
}

/** What claiming and settling costs, in every scenario and with every strategy; the strategies take turns, run by run. */
export async function benchClaims(server: BenchServer, options: ClaimBenchOptions): Promise<ClaimBenchResult> {
  const scenarios = options.groups.flat()
  const total = scenarios.reduce((sum, { strategies }) => sum + strategies.length * options.runs, 0)
  const results: ResultRow[] = []
  const environment = await environmentOf(server)
  const measure = await measureOptions(server, environment, options)
  let done = 0
  for (const group of options.groups) {
    const candidates = group.flatMap((scenario) => candidatesOf(scenario, server))
    const step = ({ scenario, subject }: Candidate, run?: number) =>
      options.onStep?.({
        scenario: scenario.name,
        strategy: subject.strategy,
        done,
        total,
        ...(run !== undefined && { run }),
      })
    for (const candidate of candidates) {
      options.signal.throwIfAborted()
      step(candidate)
      await candidate.subject.prepare()
    }
    for (let run = 1; run <= options.runs; run += 1) {
      for (const candidate of candidates) {
        options.signal.throwIfAborted()
        step(candidate, run)
        candidate.runs.push(await measureRun(candidate.subject, candidate.scenario, measure))
        done += 1
      }
    }
    results.push(
      ...candidates.map(({ scenario, subject, runs }) => resultOf({ scenario, strategy: subject.strategy, runs })),
    )
    for (const { schema } of candidates) await server.session.drop(schema)
  }
  return { results, comparisons: comparisonsOf(scenarios, results), environment }
}

interface Candidate {
  readonly scenario: Scenario
  readonly subject: Subject
  readonly schema: string
  readonly runs: RunFigures[]
}

function candidatesOf(scenario: Scenario, { connectionString, session, newSchema }: BenchServer): readonly Candidate[] {
  return scenario.strategies.map((strategy) => {
    const options = { scenario, connectionString, session, schema: newSchema() }
    const subject = strategy === 'fifo' ? new BareSubject(options) : new TenantrySubject(strategy, options)
    return { scenario, subject, schema: options.schema, runs: [] }
  })
}

export async function measureOptions(
  { session, postmasterPid }: BenchServer,
  { settings }: BenchEnvironment,
  { signal, say }: Pick<ClaimBenchOptions, 'signal' | 'say'>,
): Promise<MeasureOptions> {
  const { server_version_num: version = '0' } = settings
  const checkpoint = await session.run('checkpoint').then(
    () => true,
    () => {
      say('this role may not CHECKPOINT, so the bytes of WAL depend on when the server does it')
      return false
    },
  )
  return { session, postmasterPid, signal, checkpoint, canFlushStatistics: Number(version) >= 150_000 }
}
