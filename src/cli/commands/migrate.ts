import { Command } from 'commander'
import { type MigrationStatus, migrate, migrationSql, migrationStatus } from '../../store/migrate.js'
import { CONNECTION_HELP, schemaFrom } from '../connect.js'
import { type CommandFactory, type Edge, stdoutColors } from '../edge.js'
import { jsonOption, schemaOption } from '../options.js'
import { counted, json, table } from '../output.js'
import { withSession } from '../session.js'

interface MigrateOptions {
  readonly schema?: string
  readonly dryRun?: true
  readonly json?: true
}

export const migrateCommand: CommandFactory = (edge) =>
  new Command('migrate')
    .description('create the tables, or bring them up to this version')
    .addOption(schemaOption())
    .option('--dry-run', 'only print what would be applied')
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((options: MigrateOptions, command: Command) => run(edge, command, options))
    .addCommand(statusCommand(edge))
    .addCommand(sqlCommand(edge))

const statusCommand: CommandFactory = (edge) =>
  new Command('status')
    .description('print which migrations are applied and which are pending')
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  $ tenantry migrate status --json')
    .action((_: unknown, command: Command) => status(edge, command))

const sqlCommand: CommandFactory = (edge) =>
  new Command('sql')
    .description('print all migrations as SQL, to be applied in one transaction by a tool of yours')
    .addOption(schemaOption())
    .addHelpText('after', '\nExample:\n  $ tenantry migrate sql --schema jobs > jobs.sql')
    .action((_: unknown, command: Command) => {
      const { schema } = command.optsWithGlobals<MigrateOptions>()
      edge.stdout.write(migrationSql({ schema: schemaFrom(schema, edge.environment) }))
    })

async function run(edge: Edge, command: Command, options: MigrateOptions): Promise<void> {
  if (options.dryRun) return await status(edge, command)
  const schema = schemaFrom(options.schema, edge.environment)
  const { applied } = await withSession(edge, (session) => migrate(session, { schema }))
  if (options.json) edge.stdout.write(json({ schema, applied }))
  else if (applied.length === 0) edge.stdout.write(`Schema "${schema}" is up to date.\n`)
  else edge.stdout.write(`Applied ${counted(applied.length, 'migration')} to schema "${schema}".\n`)
}

async function status(edge: Edge, command: Command): Promise<void> {
  const options = command.optsWithGlobals<MigrateOptions>()
  const schema = schemaFrom(options.schema, edge.environment)
  const found = await withSession(edge, (session) => migrationStatus(session, { schema }))
  if (options.json) edge.stdout.write(json({ schema, ...found }))
  else edge.stdout.write(statusTable(edge, command, found))
}

function statusTable(edge: Edge, command: Command, { applied, pending }: MigrationStatus): string {
  const rows = [
    ...applied.map(({ version, name, appliedAt }) => [String(version), name, `applied ${appliedAt}`]),
    ...pending.map(({ version, name }) => [String(version), name, 'pending']),
  ]
  const columns = [{ title: 'version', align: 'right' }, { title: 'name' }, { title: 'state' }] as const
  return table(columns, rows, stdoutColors(edge, command))
}

const HELP = `
Safe to run from any number of processes at once: one applies the migrations, the others wait. All of them are
applied, or none. No superuser and no extension are needed.

${CONNECTION_HELP}

Examples:
  $ tenantry migrate
  $ tenantry migrate --dry-run
  $ tenantry migrate sql > tenantry.sql`
