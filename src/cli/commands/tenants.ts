import { Command, Option } from 'commander'
import { TENANT_ORDERS, type TenantOrder } from '../../numbers/numbers.js'
import { MINUTES, MINUTES_DEFAULT } from '../../numbers/options.js'
import type { TenantSettings } from '../../settings/settings.js'
import { CONNECTION_HELP } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { tenantTable } from '../numbers-report.js'
import { jsonOption, schemaOption, wholeNumber } from '../options.js'
import { exactJson } from '../output.js'
import { withTenantry } from '../session.js'
import { settingsGroup } from '../settings-commands.js'

interface Options {
  readonly queue: string
  readonly sort: TenantOrder
  readonly limit?: number
  readonly minutes: number
  readonly schema?: string
  readonly json?: true
}

export const queueOption = () => new Option('--queue <name>', 'the queue').default('default')

export const sortOption = () =>
  new Option('--sort <order>', 'which tenants come first; starved ones always do')
    .choices(TENANT_ORDERS)
    .default('backlog')

export const minutesOption = () =>
  new Option('--minutes <n>', 'full minutes before the current one that count')
    .argParser(wholeNumber(MINUTES.min, MINUTES.max))
    .default(MINUTES_DEFAULT)

export const tenantsCommand: CommandFactory = (edge) =>
  settingsGroup<TenantSettings>(
    edge,
    {
      of: 'tenant',
      description: 'print the tenants of a queue and what each gets; set what a tenant gets',
      configure: (tenantry, { queue, name }, change) => tenantry.configureTenant(queue, name, change),
      example: 'tenants set acme --weight 4 --concurrency 10 --queue mail',
    },
    listCommand(edge),
  )

const listCommand: CommandFactory = (edge) =>
  new Command('list')
    .description('print what waits, runs and was received, tenant by tenant; the default')
    .addOption(queueOption())
    .addOption(sortOption())
    .option('--limit <n>', 'print only the first ones', wholeNumber(1, 1_000_000))
    .addOption(minutesOption())
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((options: Options, command: Command) => list(edge, command, options))

async function list(edge: Edge, command: Command, options: Options): Promise<void> {
  const { queue, sort, minutes, limit } = options
  const all = await withTenantry(edge, options, (tenantry) => tenantry.tenants({ queue, sort, minutes }))
  const shown = all.slice(0, limit)
  if (options.json) {
    edge.stdout.write(exactJson(shown))
    return
  }
  if (all.length === 0) edge.stderr.write('no tenant of this queue has jobs or settings, or was served lately\n')
  else edge.stdout.write(tenantTable(shown, stdoutColors(edge, command)))
  if (shown.length < all.length) edge.stderr.write(`${(all.length - shown.length).toLocaleString('en-US')} more\n`)
}

const HELP = `
share is the part of the queue's service that a tenant got, entitled the part that it is to have by its weight. lag is how
much service it is ahead of the tenant that is next. A + says that more jobs wait than were counted.

${CONNECTION_HELP}

Examples:
  $ tenantry tenants --sort wait --limit 20
  $ tenantry tenants --queue mail --json | jq '.[] | select(.starved or .objective.met == false)'`
