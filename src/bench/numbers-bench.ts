import { assert } from '../assert.js'
import { measureOptions } from './claim-bench.js'
import { type BenchEnvironment, environmentOf } from './environment.js'
import { measureRun, type RunFigures } from './measure.js'
import { type Scenario, selectScenarios } from './scenarios.js'
import type { BenchServer } from './server.js'
import { median } from './summary.js'
import { TenantrySubject } from './tenantry-subject.js'

/** How much more claiming and settling may cost with numbers than without: the target. */
const MOST = 1.05

/** The drain of a thousand tenants, longer than for the claims: it has to see several flushes of every connection. */
const JOBS = 150_000

export interface NumbersBenchOptions {
  readonly runs: number
  readonly jobs?: number
  readonly signal: AbortSignal
  readonly say: (what: string) => void
  /** Runs done and to be done. */
  readonly onRun: (done: number, total: number) => void
}

/** Medians over the runs, with the smallest and the largest. */
export interface NumbersRow {
  readonly numbers: boolean
  readonly runs: number
  readonly jobs: number
  readonly serverUsPerJob: number | null
  readonly spread: { readonly min: number; readonly max: number } | null
  readonly buffersPerJob: number | null
  readonly walBytesPerJob: number | null
  readonly jobsPerSecond: number | null
}

export interface NumbersBenchResult {
  readonly scenario: string
  readonly results: readonly NumbersRow[]
  /** Server CPU per job with numbers over that without: of the medians. */
  readonly ratio: number | null
  /** The same of each pair of runs that followed each other: their median. */
  readonly ratioOfPairs: number | null
  readonly most: number
  readonly met: boolean | null
  readonly environment: BenchEnvironment
}

/** What the numbers cost: the same drain with and without them, in turns. */
export async function benchNumbers(server: BenchServer, options: NumbersBenchOptions): Promise<NumbersBenchResult> {
  const { runs, jobs = JOBS, signal, onRun } = options
  const environment = await environmentOf(server)
  const measure = await measureOptions(server, environment, options)
  const scenario = { ...thousandTenants(), jobs, backlog: jobs }
  const subjects = [false, true].map((numbers) => {
    const schema = server.newSchema()
    const subject = new TenantrySubject('fair', { ...server, scenario, schema, numbers })
    return { numbers, schema, subject, figures: [] as RunFigures[] }
  })
  for (const { subject } of subjects) await subject.prepare()
  for (let run = 0; run < runs; run += 1) {
    // In turns also within a pair: whoever comes second finds a warmer or a busier machine.
    for (const { subject, figures } of run % 2 === 0 ? subjects : subjects.toReversed()) {
      signal.throwIfAborted()
      figures.push(await measureRun(subject, scenario, measure))
      onRun(
        subjects.reduce((sum, each) => sum + each.figures.length, 0),
        runs * 2,
      )
    }
  }
  for (const { schema } of subjects) await server.session.drop(schema)
  return { ...resultOf(scenario, subjects), environment }
}

function thousandTenants(): Scenario {
  const [scenario] = selectScenarios({ only: ['tenants-1000'], roundRobin: false, quick: false }).flat()
  assert(scenario !== undefined, 'there is a drain of a thousand tenants')
  return scenario
}

interface Measured {
  readonly numbers: boolean
  readonly figures: readonly RunFigures[]
}

function resultOf({ name, jobs }: Scenario, measured: readonly Measured[]): Omit<NumbersBenchResult, 'environment'> {
  const results = measured.map((each) => rowOf(each, jobs))
  const [without, withNumbers] = results.map(({ serverUsPerJob }) => serverUsPerJob)
  const ratio = without && withNumbers ? withNumbers / without : null
  const [base = [], other = []] = measured.map(({ figures }) => figures.map(({ serverUsPerJob }) => serverUsPerJob))
  const pairs = base.flatMap((each, index) => {
    const against = other[index]
    return each && against ? [against / each] : []
  })
  return {
    scenario: name,
    results,
    ratio,
    ratioOfPairs: median(pairs),
    most: MOST,
    met: ratio === null ? null : ratio <= MOST,
  }
}

function rowOf({ numbers, figures }: Measured, jobs: number): NumbersRow {
  const of = (figure: (run: RunFigures) => number | null) => figures.map(figure).filter((value) => value !== null)
  const cpu = of((run) => run.serverUsPerJob)
  return {
    numbers,
    runs: figures.length,
    jobs,
    serverUsPerJob: median(cpu),
    spread: cpu.length === 0 ? null : { min: Math.min(...cpu), max: Math.max(...cpu) },
    buffersPerJob: median(of((run) => run.buffersPerJob)),
    walBytesPerJob: median(of((run) => run.walBytesPerJob)),
    jobsPerSecond: median(of((run) => run.jobsPerSecond)),
  }
}
