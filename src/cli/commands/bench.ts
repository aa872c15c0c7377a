import { writeFile } from 'node:fs/promises'
import { Command, Option } from 'commander'
import { benchClaims, type ClaimBenchResult, type ClaimBenchStep } from '../../bench/claim-bench.js'
import {
  claimMarkdown,
  comparisonTable,
  environmentLine,
  resultTable,
  type TextTable,
} from '../../bench/claim-report.js'
import { scenarioNames, selectScenarios } from '../../bench/scenarios.js'
import { withBenchServer } from '../../bench/server.js'
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
  new Command('bench').description('measure this version on this machine').addCommand(claimCommand(edge))

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
    .option('--quick', 'smaller sizes, for a first look in about a minute')
    .option('--save <file>', 'also write the JSON to this file, and a table in Markdown beside it')
    .addOption(jsonOption())
    .addHelpText('after', CLAIM_HELP)
    .action((options: ClaimOptions, command: Command) => benchClaim(edge, command, options))

async function benchClaim(edge: Edge, command: Command, options: ClaimOptions): Promise<void> {
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
  if (options.save !== undefined) await save(options.save, result, commandLine(options))
  if (options.json) edge.stdout.write(json(result))
  else edge.stdout.write(claimReport(result, stdoutColors(edge, command)))
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

async function save(file: string, result: ClaimBenchResult, command: string): Promise<void> {
  await writeFile(file, json(result))
  await writeFile(`${file.replace(/\.json$/, '')}.md`, claimMarkdown(result, command))
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

const CLAIM_HELP = `
Starts a PostgreSQL server in a temporary directory and removes it afterwards. With TENANTRY_DATABASE_URL or
DATABASE_URL set, uses that server instead, in schemas of its own that are dropped at the end; its CPU time is measured
if it runs on this machine, on Linux, and its processes can be seen.

Every run claims and settles a number of jobs and checks that none was claimed twice or lost. Before it, the tables are
loaded, VACUUM (ANALYZE) and CHECKPOINT are run, and every session is warmed up; autovacuum is off. The strategies take
turns, run by run. fifo is the bare SQL of sql/bench/bare_fifo.sql; fair is the library with its default strategy.

Examples:
  $ tenantry bench claim
  $ tenantry bench claim --only tenants-11 --runs 3
  $ tenantry bench claim --json | jq '.comparisons[] | select(.met == false)'`
