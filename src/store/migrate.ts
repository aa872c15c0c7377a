import { createHash } from 'node:crypto'
import { delay } from '../clock.js'
import { isLockTimeout } from '../driver/pg-errors.js'
import { TenantryError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import { jittered, systemRandom } from '../random.js'
import { checkSchemaName, withSchema } from './schema-name.js'
import { MIGRATIONS } from './sql.gen.js'

/** One session: a node-postgres Client or PoolClient. Not a pool, whose every query may run in another session. */
export interface MigrationConnection {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
}

export interface MigrateOptions {
  readonly schema: string
  readonly logger?: Logger
}

export interface MigrationStatus {
  /** What the database has, oldest first. */
  readonly applied: readonly AppliedMigration[]
  /** What this version of the code would apply. */
  readonly pending: readonly { readonly version: number; readonly name: string }[]
}

export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  /** Database time, ISO 8601. */
  readonly appliedAt: string
}

/** How long one process waits for another that migrates the same schema. */
const TURN_TIMEOUT_MS = 120_000

/** How long a migration waits for a table. Short, because everybody who comes later queues up behind the waiting one. */
const TABLE_LOCK_TIMEOUT_MS = 5_000

/** A table that is busy for longer than all these attempts is held by something that a person must look at. */
const ATTEMPTS = 6

/**
 * Brings the schema up to the version of this code; creates it when it does not exist. May be called by any number of
 * processes at once: one does the work, the others wait for it.
 */
export async function migrate(
  connection: MigrationConnection,
  options: MigrateOptions,
): Promise<{ readonly applied: readonly number[] }> {
  return applyMigrations(connection, { ...options, migrations: MIGRATIONS })
}

/** As `migrate`, with any list of migrations. */
export async function applyMigrations(
  connection: MigrationConnection,
  options: MigrateOptions & { readonly migrations: readonly Migration[] },
): Promise<{ readonly applied: readonly number[] }> {
  const { schema, logger = silentLogger, migrations } = options
  checkSchemaName(schema)
  for (let attempt = 1; ; attempt++) {
    try {
      return { applied: await runInTransaction(connection, { schema, logger, migrations }) }
    } catch (error) {
      // Our own error is about another process that migrates, for which we have waited long enough.
      if (error instanceof TenantryError || !isLockTimeout(error) || attempt === ATTEMPTS) throw error
      logger.warn('a migration waits for a table that is in use', { schema, attempt, attempts: ATTEMPTS })
      await delay(jittered(1_000 * attempt, systemRandom))
    }
  }
}

interface Run {
  readonly schema: string
  readonly logger: Logger
  readonly migrations: readonly Migration[]
}

/** All or nothing: whoever is killed on the way leaves the version that was there before. */
async function runInTransaction(connection: MigrationConnection, run: Run): Promise<readonly number[]> {
  // Neither the role's default isolation level nor a read-only default may decide here.
  await connection.query('begin isolation level read committed read write')
  try {
    await prepareSession(connection)
    await takeTurn(connection, run)
    const applied = await applyPending(connection, run)
    await connection.query('commit')
    return applied
  } catch (error) {
    // The error that matters is the first one; the session may be gone already.
    await connection.query('rollback').catch(() => {})
    throw error
  }
}

/** What a role, a database or a session may have set must neither end a migration nor change its meaning. */
async function prepareSession(connection: MigrationConnection): Promise<void> {
  const settings = {
    statement_timeout: '0',
    idle_in_transaction_session_timeout: '0',
    transaction_timeout: '0',
    lock_timeout: `${TURN_TIMEOUT_MS}ms`,
    search_path: 'pg_catalog, pg_temp',
    standard_conforming_strings: 'on',
    check_function_bodies: 'on',
    client_min_messages: 'warning',
  }
  await connection.query(
    `select pg_catalog.set_config(wanted.name, wanted.setting, true)
     from unnest($1::text[], $2::text[]) as wanted (name, setting)
     where exists (select from pg_catalog.pg_settings as known where known.name = wanted.name)`,
    [Object.keys(settings), Object.values(settings)],
  )
}

/**
 * One process at a time, decided before anything is created: `create … if not exists` fails when two run it at once.
 * The lock belongs to the transaction, so it needs no session of its own behind a pooler and a kill gives it back.
 */
async function takeTurn(connection: MigrationConnection, { schema, logger }: Run): Promise<void> {
  const key = createHash('sha256').update(`tenantry migrate ${schema}`).digest().readBigInt64BE(0).toString()
  const { rows } = await connection.query('select pg_try_advisory_xact_lock($1::bigint) as taken', [key])
  if (!(rows[0] as { readonly taken: boolean } | undefined)?.taken) {
    logger.info('waiting for another process that migrates the same schema', { schema, timeoutMs: TURN_TIMEOUT_MS })
    await waitForTurn(connection, key)
  }
  await connection.query(`set local lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`)
}

async function waitForTurn(connection: MigrationConnection, key: string): Promise<void> {
  try {
    await connection.query('select pg_advisory_xact_lock($1::bigint)', [key])
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    throw new TenantryError(
      'QUERY_FAILED',
      `another process has been migrating the same schema for ${TURN_TIMEOUT_MS / 1_000} s; see in pg_stat_activity what it waits for`,
      { cause: error },
    )
  }
}

async function applyPending(connection: MigrationConnection, run: Run): Promise<readonly number[]> {
  const { schema, logger, migrations } = run
  const applied = await readApplied(connection, schema)
  checkApplied(applied ?? [], run)
  const pending = pendingOf(applied ?? [], migrations)
  if (applied === undefined) await createMigrationTable(connection, schema)
  for (const migration of pending) {
    try {
      await connection.query(withSchema(migration.text, schema))
    } catch (error) {
      if (isLockTimeout(error)) throw error
      const where = `migration ${migration.version} (${migration.name}) of schema ${JSON.stringify(schema)}`
      const why = `${error instanceof Error ? error.message : String(error)}${lineOf(error, migration.text)}`
      throw new TenantryError('QUERY_FAILED', `${where} failed and nothing was changed; ${why}`, { cause: error })
    }
    await connection.query(withSchema(RECORD_MIGRATION, schema), [
      migration.version,
      migration.name,
      checksum(migration),
    ])
    logger.info('migration applied', { schema, version: migration.version, name: migration.name })
  }
  return pending.map(({ version }) => version)
}

const MIGRATION_TABLE = `create table :schema.migration (
  version int primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default now()
)`

const RECORD_MIGRATION = 'insert into :schema.migration (version, name, checksum) values ($1::int, $2::text, $3::text)'

/** Asks before it creates, because `if not exists` demands the right to create even of those who need not. */
async function createMigrationTable(connection: MigrationConnection, schema: string): Promise<void> {
  const { rows } = await connection.query('select from pg_namespace where nspname = $1::text', [schema])
  if (rows.length === 0) await connection.query(withSchema('create schema :schema', schema))
  await connection.query(withSchema(MIGRATION_TABLE, schema))
}

/** Undefined when the schema has no migration table yet. */
async function readApplied(
  connection: MigrationConnection,
  schema: string,
): Promise<readonly AppliedMigration[] | undefined> {
  const { rows } = await connection.query(
    `select from pg_catalog.pg_class as class
     join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
     where namespace.nspname = $1::text and class.relname = 'migration'`,
    [schema],
  )
  if (rows.length === 0) return undefined
  const applied = await connection.query(
    withSchema(
      `select version::text as version, name, checksum,
         to_char(applied_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "appliedAt"
       from :schema.migration
       order by migration.version`,
      schema,
    ),
  )
  return (applied.rows as readonly (Omit<AppliedMigration, 'version'> & { readonly version: string })[]).map((row) => ({
    ...row,
    version: Number(row.version),
  }))
}

function pendingOf(applied: readonly AppliedMigration[], migrations: readonly Migration[]): readonly Migration[] {
  const versions = new Set(applied.map(({ version }) => version))
  return migrations.filter(({ version }) => !versions.has(version))
}

function checkApplied(applied: readonly AppliedMigration[], { schema, logger, migrations }: Run): void {
  for (const row of applied) {
    const migration = migrations.find(({ version }) => version === row.version)
    if (migration && checksum(migration) !== row.checksum) {
      throw new TenantryError(
        'MIGRATION_REQUIRED',
        `migration ${row.version} of schema ${JSON.stringify(schema)} was applied as "${row.name}" with another text than ` +
          'this version of tenantry has; install the version that applied it, or migrate into a new schema',
      )
    }
  }
  const newest = applied.at(-1)?.version ?? 0
  const known = migrations.at(-1)?.version ?? 0
  if (newest > known) {
    // Old and new workers run side by side during a deployment, so this is no error.
    logger.warn('the database was migrated by a newer version of tenantry than this one', { schema, newest, known })
  }
}

function checksum({ text }: Migration): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Where in the file a syntax error is; the name of the schema does not add lines. */
function lineOf(error: unknown, text: string): string {
  const position = error instanceof Error && 'position' in error ? Number(error.position) : Number.NaN
  return Number.isNaN(position) ? '' : ` (near line ${text.slice(0, position).split('\n').length})`
}

/** What was applied and what is still to do. Reads only. */
export async function migrationStatus(
  connection: MigrationConnection,
  { schema }: { readonly schema: string },
): Promise<MigrationStatus> {
  checkSchemaName(schema)
  const applied = (await readApplied(connection, schema)) ?? []
  const pending = pendingOf(applied, MIGRATIONS).map(({ version, name }) => ({ version, name }))
  return { applied, pending }
}

/** Everything as one SQL text, for those who apply it with a tool of their own, in one transaction. */
export function migrationSql({ schema }: { readonly schema: string }): string {
  const steps = MIGRATIONS.map((migration) => {
    const values = `(${migration.version}, '${migration.name}', '${checksum(migration)}')`
    const record = `insert into :schema.migration (version, name, checksum) values ${values};`
    return `-- ${migration.version}: ${migration.name}\n${migration.text.trim()}\n${record}\n`
  })
  const text = ['create schema if not exists :schema;\n', `${MIGRATION_TABLE};\n`, ...steps].join('\n')
  return withSchema(text, schema)
}
