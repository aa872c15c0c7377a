import { writeFile } from 'node:fs/promises'
import { Command, Option } from 'commander'
import { benchClaims, type ClaimBenchResult, type ClaimBenchStep } from '../../bench/claim-bench.js'
import { claimMarkdown, comparisonTable, environmentLine, resultTable } from '../../bench/claim-report.js'
import { benchLatency, type LatencyBenchResult } from '../../bench/latency-bench.js'
import { latencyMarkdown, latencyTable, latencyTargetTable, slotTable } from '../../bench/latency-report.js'
import { benchNumbers, type NumbersBenchResult } from '../../bench/numbers-bench.js'
import { numbersMarkdown, numbersTable, numbersTargetTable } from '../../bench/numbers-report.js'
import { scenarioNames, selectScenarios } from '../../bench/scenarios.js'
import { withBenchServer } from '../../bench/server.js'
import type { TextTable } from '../../bench/text-table.js'
import { urlFrom } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { jsonOption, wholeNumber } from '../options.js'
import { type Colors, json, table } from '../output.js'
import { StatusLine } from '../status-line.js'

interface ClaimOptions {
  readonly runs?: number
  readonly only?: readonly string[]
  readonly with?: 'round-robin'
  readonly quick?: true
  readonly save?: string
  readonly json?: true
}

/** The targets are stated as medians of so many. */
const RUNS = 5
const QUICK_RUNS = 3

export const benchCommand: CommandFactory = (edge) =>
  new Command('bench')
    .description('measure this version on this machine')
    .addCommand(claimCommand(edge))
    .addCommand(latencyCommand(edge))
    .addCommand(numbersCommand(edge))

const claimCommand: CommandFactory = (edge) =>
  new Command('claim')
    .description('measure what claiming and settling costs, against a bare SQL FIFO')
    .option(
      '--runs <n>',
      `runs of each strategy in each scenario (default: ${RUNS}, with --quick ${QUICK_RUNS})`,
      wholeNumber(1, 100),
    )
    .addOption(new Option('--only <name...>', 'measure only these scenarios').choices(scenarioNames()))
    .addOption(
      new Option('--with <strategy>', 'measure this one as well, where it ends in time').choices(['round-robin']),
    )
    .option('--quick', 'smaller sizes, for a first look in a few minutes')
    .option('--save <file>', 'also write the JSON to this file, and a table in Markdown beside it')
    .addOption(jsonOption())
    .addHelpText('after', CLAIM_HELP)
    .action((options: ClaimOptions, command: Command) => claim(edge, command, options))

async function claim(edge: Edge, command: Command, options: ClaimOptions): Promise<void> {
  const url = urlFrom(edge.environment)
  const status = new StatusLine(edge.stderr)
  const say = (what: string) => status.say(what)
  if (url) say(`using ${url.description}`)
  const { only, quick = false } = options
  const groups = selectScenarios({ only, quick, roundRobin: options.with === 'round-robin' })
  const runs = options.runs ?? (quick ? QUICK_RUNS : RUNS)
  const onStep = (step: ClaimBenchStep) => status.show(stepText(step))
  const { signal } = edge
  const result = await withBenchServer({ connectionString: url?.connectionString, signal, say }, (server) =>
    benchClaims(server, { groups, runs, signal, say, onStep }),
  ).finally(() => status.clear())
  if (quick) say('sizes are reduced: the targets are stated for the full ones')
  if (options.save !== undefined) {
    await save(options.save, json(result), claimMarkdown(result, commandLine(options)))
  }
  if (options.json) edge.stdout.write(json(result))
  else edge.stdout.write(claimReport(result, stdoutColors(edge, command)))
}

interface LatencyOptions {
  readonly samples: number
  readonly save?: string
  readonly json?: true
}

const latencyCommand: CommandFactory = (edge) =>
  new Command('latency')
    .description('measure how soon a job starts: in an idle queue, and once a slot of a limit is free')
    .option(
      '--samples <n>',
      'jobs with LISTEN, and of each limit; by polling a third as many',
      wholeNumber(10, 100_000),
      300,
    )
    .option('--save <file>', 'also write the JSON to this file, and a table in Markdown beside it')
    .addOption(jsonOption())
    .addHelpText('after', LATENCY_HELP)
    .action((options: LatencyOptions, command: Command) => latency(edge, command, options))

async function latency(edge: Edge, command: Command, options: LatencyOptions): Promise<void> {
  const { signal } = edge
  const url = urlFrom(edge.environment)
  const status = new StatusLine(edge.stderr)
  const say = (what: string) => status.say(what)
  if (url) say(`using ${url.description}`)
  const onSample = (done: number, total: number) => status.show(`${done} of ${total} samples`)
  const { samples } = options
  const result = await withBenchServer({ connectionString: url?.connectionString, signal, say }, (server) =>
    benchLatency(server, { samples, signal, onSample }),
  ).finally(() => status.clear())
  if (options.save !== undefined) {
    const markdown = latencyMarkdown(result, `npx tenantry bench latency --samples ${samples}`)
    await save(options.save, json(result), markdown)
  }
  if (options.json) edge.stdout.write(json(result))
  else edge.stdout.write(latencyReport(result, stdoutColors(edge, command)))
}

function latencyReport(result: LatencyBenchResult, colors: Colors): string {
  const tables = [latencyTable(result), slotTable(result), latencyTargetTable(result)].map((each) =>
    textTable(each, colors),
  )
  return [...tables, `${environmentLine(result.environment)}\n`].join('\n')
}

interface NumbersOptions {
  readonly runs: number
  readonly jobs?: number
  readonly save?: string
  readonly json?: true
}

const numbersCommand: CommandFactory = (edge) =>
  new Command('numbers')
    .description('measure what counting per tenant adds to claiming and settling')
    .option('--runs <n>', 'runs with and as many without', wholeNumber(1, 100), RUNS)
    .option('--jobs <n>', 'jobs of a run; the target is stated for the default', wholeNumber(1_000, 10_000_000))
    .option('--save <file>', 'also write the JSON to this file, and a table in Markdown beside it')
    .addOption(jsonOption())
    .addHelpText('after', NUMBERS_HELP)
    .action((options: NumbersOptions, command: Command) => numbers(edge, command, options))

async function numbers(edge: Edge, command: Command, options: NumbersOptions): Promise<void> {
  const { signal } = edge
  const url = urlFrom(edge.environment)
  const status = new StatusLine(edge.stderr)
  const say = (what: string) => status.say(what)
  if (url) say(`using ${url.description}`)
  const onRun = (done: number, total: number) => status.show(`${done} of ${total} runs`)
  const { runs, jobs } = options
  const sized = { runs, ...(jobs !== undefined && { jobs }) }
  const result = await withBenchServer({ connectionString: url?.connectionString, signal, say }, (server) =>
    benchNumbers(server, { ...sized, signal, say, onRun }),
  ).finally(() => status.clear())
  if (options.save !== undefined) {
    const more = jobs === undefined ? '' : ` --jobs ${jobs}`
    await save(options.save, json(result), numbersMarkdown(result, `npx tenantry bench numbers --runs ${runs}${more}`))
  }
  if (options.json) edge.stdout.write(json(result))
  else edge.stdout.write(numbersReport(result, stdoutColors(edge, command)))
}

function numbersReport(result: NumbersBenchResult, colors: Colors): string {
  const tables = [numbersTable(result), numbersTargetTable(result)].map((each) => textTable(each, colors))
  return [...tables, `${environmentLine(result.environment)}\n`].join('\n')
}

function stepText({ scenario, strategy, run, done, total }: ClaimBenchStep): string {
  return `${done} of ${total} runs  ${scenario}  ${strategy}  ${run === undefined ? 'preparing' : `run ${run}`}`
}

function claimReport({ results, comparisons, environment }: ClaimBenchResult, colors: Colors): string {
  const parts = [textTable(resultTable(results), colors)]
  if (comparisons.length > 0) parts.push(textTable(comparisonTable(comparisons), colors))
  return [...parts, `${environmentLine(environment)}\n`].join('\n')
}

function textTable({ words, titles, rows }: TextTable, colors: Colors): string {
  const columns = titles.map((title, index) => ({
    title,
    align: index < words ? ('left' as const) : ('right' as const),
  }))
  return table(columns, rows, colors)
}

async function save(file: string, text: string, markdown: string): Promise<void> {
  await writeFile(file, text)
  await writeFile(`${file.replace(/\.json$/, '')}.md`, markdown)
}

/** How the command was called, as far as it matters for the figures. */
function commandLine(options: ClaimOptions): string {
  return [
    'npx tenantry bench claim',
    ...(options.runs !== undefined ? [`--runs ${options.runs}`] : []),
    ...(options.only ? [`--only ${options.only.join(' ')}`] : []),
    ...(options.with ? [`--with ${options.with}`] : []),
    ...(options.quick ? ['--quick'] : []),
  ].join(' ')
}

const SERVER_HELP = `Starts a PostgreSQL server in a temporary directory and removes it afterwards. With TENANTRY_DATABASE_URL or
DATABASE_URL set, uses that server instead, in schemas of its own that are dropped at the end.`

const CLAIM_HELP = `
${SERVER_HELP}
The CPU time of the server is measured if it runs on this machine, on Linux, and its processes can be seen.

Every run claims and settles a number of jobs and checks that none was claimed twice or lost. Before it, the tables are
loaded, VACUUM (ANALYZE) and CHECKPOINT are run, and every session is warmed up; autovacuum is off. The strategies take
turns, run by run. fifo is the bare SQL of sql/bench/bare_fifo.sql; fair is the library with its default strategy.

Examples:
  $ tenantry bench claim
  $ tenantry bench claim --only tenants-11 --runs 3
  $ tenantry bench claim --json | jq '.comparisons[] | select(.met == false)'`

const LATENCY_HELP = `
A worker in a process of its own waits for the jobs that this process enqueues, one after another after random pauses.
The time runs from when the commit is confirmed; with the commit itself it is shown beside. With LISTEN first, then by
polling. After that one or two worker processes with eight slots each work through a backlog of which one job may run at a
time, because of the limit of a tenant or of a key: the time runs from the end of a handler to the start of the next one.

${SERVER_HELP}`

const NUMBERS_HELP = `
${SERVER_HELP}

A thousand tenants' jobs are claimed and settled over four connections, with and without what a worker does besides: counting
what each tenant gets, and recording it every five seconds. The runs take turns.`
