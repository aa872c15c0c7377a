import { Command, InvalidArgumentError, Option } from 'commander'
import type { Charge, TenantSettings } from '../../scheduler/settings.js'
import { CONCURRENCY, WEIGHT } from '../../settings/check.js'
import { type Dispatch, dryRun } from '../../simulate/dry-run.js'
import type { LiveState } from '../../simulate/live-state.js'
import { simulate } from '../../simulate/simulate.js'
import { type SimulatedWorkload, WORKLOADS, type WorkloadName, workloadOf } from '../../simulate/workloads.js'
import { statements } from '../../store/sql.js'
import { textRows } from '../../store/text-rows.js'
import { compress, readTrace } from '../../workload/trace.js'
import { CONNECTION_HELP, schemaFrom } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, schemaOption, wholeNumber } from '../options.js'
import { exactJson, json } from '../output.js'
import { withSession } from '../session.js'
import { dispatchesTable, fairnessLine, simulatedTable, type TenantDispatches } from '../simulate-report.js'

type Pairs = ReadonlyMap<string, string>

interface Options {
  readonly tenants: number
  readonly jobs: number
  readonly slots: number
  readonly batch: number
  readonly runMs: number
  readonly charge: Charge
  readonly seed: number
  readonly rows: number
  readonly weight: Pairs
  readonly group: Pairs
  readonly groupWeight: Pairs
  readonly concurrency: Pairs
  readonly groups: boolean
  readonly live?: string
  readonly dispatches: number
  readonly kind: readonly string[]
  readonly schema?: string
  readonly json?: true
}

/** More would take more memory than a laptop has to spare: about 300 bytes a job. */
const JOBS_MAX = 5_000_000

export const simulateCommand: CommandFactory = (edge) =>
  new Command('simulate')
    .description('run the scheduler in memory: a workload against FIFO, or what a live queue would start next')
    .argument('[workload]', `${WORKLOADS.join(', ')}, or a log in Standard Workload Format`, 'noisy')
    .option('--tenants <n>', 'tenants of a made-up workload', wholeNumber(1, 100_000), 20)
    .option('--jobs <n>', 'jobs of the workload', wholeNumber(1, JOBS_MAX), 10_000)
    .option('--slots <n>', 'jobs that run at a time', wholeNumber(1, 100_000), 8)
    .option('--batch <n>', 'jobs that a claim asks for at most', wholeNumber(1, 500), 8)
    .option('--run-ms <ms>', 'how long a job of a made-up workload runs', wholeNumber(1, 86_400_000), 100)
    .option('--seed <n>', 'of chance: the same seed gives the same run', wholeNumber(0, 4_294_967_295), 1)
    .addOption(new Option('--charge <what>', 'what a turn costs').choices(['jobs', 'time']).default('jobs'))
    .option('--rows <n>', 'print only so many tenants', wholeNumber(1, 1_000_000), 20)
    .addOption(pairs('--weight <tenant=weight>', 'weight of a tenant'))
    .addOption(pairs('--group <tenant=group>', 'group of a tenant'))
    .addOption(pairs('--group-weight <group=weight>', 'weight of a group'))
    .addOption(pairs('--concurrency <tenant=n>', 'jobs of a tenant that may run at once'))
    .option('--no-groups', 'without the groups that belong to the workload')
    .option('--live <queue>', 'not a workload: what would this queue start next?')
    .option('--dispatches <n>', 'with --live: how many', wholeNumber(1, 100_000), 1_000)
    .option('--kind <kind>', 'with --live: only claims of this kind; may be given several times', collect, [])
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((workload: string, options: Options, command: Command) =>
      options.live === undefined
        ? simulated(edge, command, { ...options, workload })
        : live(edge, command, { ...options, live: options.live }),
    )

async function simulated(
  edge: Edge,
  command: Command,
  options: Options & { readonly workload: string },
): Promise<void> {
  const workload = await chosen(options)
  const groups = options.groups ? workload.groups : new Map<string, string>()
  const figures = simulate(workload.jobs, {
    slots: options.slots,
    batch: options.batch,
    charge: options.charge,
    tenants: tenantSettings(options, groups),
    groups: groupWeights(options),
  })
  if (options.json) {
    edge.stdout.write(json({ workload: options.workload, seed: options.seed, slots: options.slots, ...figures }))
    return
  }
  edge.stdout.write(simulatedTable(figures, options.rows, stdoutColors(edge, command)))
  edge.stdout.write(`${fairnessLine(figures)}\n`)
  const more = figures.fair.tenants.length - options.rows
  if (more > 0) edge.stderr.write(`${more.toLocaleString('en-US')} more tenants; --rows prints them\n`)
}

async function chosen(options: Options & { readonly workload: string }): Promise<SimulatedWorkload> {
  const { workload, tenants, jobs, slots, runMs, seed } = options
  const name = WORKLOADS.find((each) => each === workload) as WorkloadName | undefined
  if (name) return workloadOf(name, { tenants, jobs, slots, durationMs: runMs, seed })
  return { jobs: compress(await readTrace(workload, jobs), 1).jobs, groups: new Map() }
}

async function live(edge: Edge, command: Command, options: Options & { readonly live: string }): Promise<void> {
  const { live: queue, dispatches, batch, kind: kinds } = options
  const schema = schemaFrom(options.schema, edge.environment)
  const state = await withSession(edge, async (session) => {
    const [row] = await textRows(session, statements(schema).simulate_state.text, [queue, dispatches, LIVE_JOBS_MAX])
    return JSON.parse(row?.['state'] ?? '{}') as LiveState
  })
  if (state.queue && state.queue.strategy !== 'fair') {
    throw new CommandError(
      EXIT.usage,
      `queue ${queue} has strategy ${state.queue.strategy}; only fair queues can be simulated`,
    )
  }
  const run = { dispatches, batch, kinds }
  const now = dryRun(state, { ...run, tenants: new Map(), groups: new Map() })
  const settings = { tenants: tenantSettings(options, new Map()), groups: groupWeights(options) }
  const isTried = settings.tenants.size + settings.groups.size > 0
  const tried = isTried ? dryRun(state, { ...run, ...settings }) : now
  const tenants = compared(tried, now)
  const isCapped = (state.jobs?.length ?? 0) >= LIVE_JOBS_MAX
  if (options.json) {
    edge.stdout.write(
      exactJson({
        queue,
        dispatches: tried.length,
        capped: isCapped,
        tenants,
        order: tried.map(({ tenant }) => tenant),
      }),
    )
    return
  }
  if (tried.length === 0) edge.stderr.write('nothing of this queue would start now\n')
  else edge.stdout.write(dispatchesTable(tenants.slice(0, options.rows), isTried, stdoutColors(edge, command)))
  if (isCapped)
    edge.stderr.write(`only the first ${LIVE_JOBS_MAX.toLocaleString('en-US')} jobs that wait were looked at\n`)
}

/** Some 100 bytes each: a queue with more is looked at in part, those first that are served first. */
const LIVE_JOBS_MAX = 200_000

function compared(tried: readonly Dispatch[], now: readonly Dispatch[]): TenantDispatches[] {
  const [after, before] = [counted(tried), counted(now)]
  return [...new Set([...after.keys(), ...before.keys()])]
    .map((tenant) => ({
      tenant,
      dispatches: after.get(tenant)?.count ?? 0,
      first: after.get(tenant)?.first ?? null,
      dispatchesNow: before.get(tenant)?.count ?? 0,
      firstNow: before.get(tenant)?.first ?? null,
    }))
    .sort((one, other) => other.dispatches - one.dispatches || (one.tenant < other.tenant ? -1 : 1))
}

function counted(dispatches: readonly Dispatch[]): Map<string, { count: number; readonly first: number }> {
  const counts = new Map<string, { count: number; readonly first: number }>()
  for (const [place, { tenant }] of dispatches.entries()) {
    const known = counts.get(tenant)
    if (known) known.count += 1
    else counts.set(tenant, { count: 1, first: place + 1 })
  }
  return counts
}

function tenantSettings(options: Options, groups: ReadonlyMap<string, string>): Map<string, TenantSettings> {
  const settings = new Map<string, TenantSettings>()
  const add = (tenant: string, more: TenantSettings) => settings.set(tenant, { ...settings.get(tenant), ...more })
  for (const [tenant, group] of groups) add(tenant, { group })
  for (const [tenant, group] of options.group) add(tenant, { group })
  for (const [tenant, text] of options.weight) add(tenant, { weight: inRange('--weight', text, WEIGHT) })
  for (const [tenant, text] of options.concurrency) {
    const concurrency = inRange('--concurrency', text, CONCURRENCY)
    if (!Number.isInteger(concurrency))
      throw new CommandError(EXIT.usage, `expected --concurrency to be an integer, got ${text}`)
    add(tenant, { concurrency })
  }
  return settings
}

function groupWeights({ groupWeight }: Options): Map<string, number> {
  return new Map([...groupWeight].map(([group, text]) => [group, inRange('--group-weight', text, WEIGHT)]))
}

function inRange(name: string, text: string, { min, max }: { readonly min: number; readonly max: number }): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= min && value <= max) return value
  throw new CommandError(EXIT.usage, `expected ${name} to be a number from ${min} to ${max}, got ${text}`)
}

/** `name=value`, given once for each name. The name may hold an equals sign. */
function pairs(flags: string, description: string): Option {
  return new Option(flags, `${description}; may be given several times`)
    .default(new Map(), 'none')
    .argParser((text: string, before: Pairs) => {
      const at = text.lastIndexOf('=')
      if (at > 0 && at < text.length - 1) return new Map(before).set(text.slice(0, at), text.slice(at + 1))
      throw new InvalidArgumentError('Expected name=value.')
    })
}

function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text]
}

const HELP = `
Nothing runs and nothing is written: the scheduler that the database's claims follow works here in memory, on virtual
time. Workloads: noisy (one tenant enqueues half of the jobs at once), skewed (the tenant of rank r has a part of 1/r),
sybil (one tenant against one that splits its jobs over all other names, which are one group), bursty (everybody enqueues
50 jobs at a time), or a log, of which every user is a tenant. share is the part of the service that a tenant got
in the first half of the run, entitled what it would have got if all that waited had been served at the same time.

--live reads the state of a queue in one snapshot and says what its next dispatches would be, as it is and with the
settings that are given: what runs goes on running, and what starts is taken to end before the next claim.

${CONNECTION_HELP}

Examples:
  $ tenantry simulate sybil --tenants 101
  $ tenantry simulate skewed --jobs 100000 --weight tenant-1=4 --json
  $ tenantry simulate NASA-iPSC-1993-3.1-cln.swf.gz --slots 64 --charge time
  $ tenantry simulate --live default --weight acme=10`
