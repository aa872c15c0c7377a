import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Logger } from '../../src/logger.js'
import { applyMigrations, type Migration, migrate, migrationSql, migrationStatus } from '../../src/store/migrate.js'
import { quoteSchema } from '../../src/store/schema-name.js'
import { MIGRATIONS } from '../../src/store/sql.gen.js'
import { createSchema, type TestSchema } from '../support/database.js'
import { createRole } from '../support/role.js'
import { until } from '../support/until.js'

const first: Migration = { version: 1, name: 'first', text: 'create table :schema.one (id int); select 1;' }
const second: Migration = { version: 2, name: 'second', text: 'create table :schema.two (id int);' }

async function tables({ query, schema }: TestSchema): Promise<string[]> {
  const rows = await query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = $1 order by tablename',
    [schema],
  )
  return rows.map(({ name }) => name)
}

function recordingLogger(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = []
  const log = (message: string) => {
    lines.push(message)
  }
  return { logger: { debug: log, info: log, warn: log, error: log }, lines }
}

async function clients(test: TestSchema, count: number): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: count }, () => test.connect()))
}

test('migrating an empty database applies every migration, and again applies none', async () => {
  const created = await createSchema({ migrated: false })
  const client = await created.connect()
  const all = MIGRATIONS.map(({ version }) => version)
  expect(await migrate(client, created)).toEqual({ applied: all })
  expect(await migrate(client, created)).toEqual({ applied: [] })
  const status = await migrationStatus(client, created)
  expect(status.applied.map(({ version }) => version)).toEqual(all)
  expect(status.pending).toEqual([])
})

describe.each([1, 2, 3])('round %i', () => {
  test('twenty processes that boot at once on an empty database all succeed and one migrates (B81)', async () => {
    const created = await createSchema({ migrated: false })
    const results = await Promise.all((await clients(created, 20)).map((client) => migrate(client, created)))
    const busy = results.filter(({ applied }) => applied.length > 0)
    expect(busy).toEqual([{ applied: MIGRATIONS.map(({ version }) => version) }])
  })
})

test('a process that waits for another one says so and then finds nothing to do (B81)', async () => {
  const created = await createSchema({ migrated: false })
  const gate = await createSchema({ empty: true })
  await gate.query(`create table ${gate.quoted}.gate ()`)
  const [holder, one, two] = await clients(created, 3)
  await holder?.query(`begin; lock table ${gate.quoted}.gate`)
  const migrations = [first, { ...second, text: `${second.text} lock table ${gate.quoted}.gate;` }]
  const running = applyMigrations(one as pg.Client, { ...created, migrations })
  await until(() => isWaitingFor(created, one as pg.Client, 'relation'), { until: 'the migration waits at the gate' })
  const { logger, lines } = recordingLogger()
  const waiting = applyMigrations(two as pg.Client, { ...created, migrations, logger })
  await until(() => isWaitingFor(created, two as pg.Client, 'advisory'), { until: 'the other process waits' })
  await holder?.query('commit')
  expect(await running).toEqual({ applied: [1, 2] })
  expect(await waiting).toEqual({ applied: [] })
  expect(lines).toEqual(['waiting for another process that migrates the same schema'])
})

async function isWaitingFor(created: TestSchema, client: pg.Client, what: string): Promise<boolean> {
  const rows = await created.query(
    `select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock' and wait_event = $2`,
    [backendOf(client), what],
  )
  return rows.length > 0
}

/** node-postgres knows it, its types do not say so. */
function backendOf(client: pg.Client): number {
  return (client as unknown as { readonly processID: number }).processID
}

test('a process killed in mid-migration leaves the old version whole, and the next one goes on (B81)', async () => {
  const created = await createSchema({ migrated: false })
  const gate = await createSchema({ empty: true })
  await gate.query(`create table ${gate.quoted}.gate ()`)
  const [holder, victim, next] = await clients(created, 3)
  await applyMigrations(next as pg.Client, { ...created, migrations: [first] })
  await holder?.query(`begin; lock table ${gate.quoted}.gate`)
  const blocked = { ...second, text: `${second.text} lock table ${gate.quoted}.gate;` }
  const third: Migration = { version: 3, name: 'third', text: 'create table :schema.three (id int);' }
  const killed = applyMigrations(victim as pg.Client, { ...created, migrations: [first, blocked, third] })
  killed.catch(() => {})
  await until(() => isWaitingFor(created, victim as pg.Client, 'relation'), { until: 'the migration is half-way' })
  await created.query('select pg_terminate_backend($1)', [backendOf(victim as pg.Client)])
  await expect(killed).rejects.toThrow('terminating connection')
  await holder?.query('rollback')
  expect(await tables(created)).toEqual(['migration', 'one'])
  expect(await applyMigrations(next as pg.Client, { ...created, migrations: [first, second, third] })).toEqual({
    applied: [2, 3],
  })
})

test('a migration that fails changes nothing and says which one it was', async () => {
  const created = await createSchema({ migrated: false })
  const client = await created.connect()
  const broken: Migration = { version: 2, name: 'broken', text: 'create table :schema.two (); select 1 / 0;' }
  await expect(applyMigrations(client, { ...created, migrations: [first, broken] })).rejects.toThrow(
    `migration 2 (broken) of schema "${created.schema}" failed and nothing was changed; division by zero`,
  )
  expect(await tables(created)).toEqual([])
})

test('a migration waits for a table in use only for a while at a time, then lets others pass and tries again', async () => {
  const created = await createSchema({ migrated: false })
  const [holder, client] = await clients(created, 2)
  await applyMigrations(client as pg.Client, { ...created, migrations: [first] })
  await holder?.query(`begin; lock table ${created.quoted}.one in access share mode`)
  const { logger, lines } = recordingLogger()
  const alter: Migration = { version: 2, name: 'alter', text: 'alter table :schema.one add column extra int;' }
  const running = applyMigrations(client as pg.Client, { ...created, migrations: [first, alter], logger })
  await until(() => lines.includes('a migration waits for a table that is in use'), { until: 'the first attempt ends' })
  await holder?.query('commit')
  expect(await running).toEqual({ applied: [2] })
})

test('an applied migration whose text has changed is refused', async () => {
  const created = await createSchema({ migrated: false })
  const client = await created.connect()
  await applyMigrations(client, { ...created, migrations: [first] })
  const changed = { ...first, text: `${first.text} -- changed` }
  await expect(applyMigrations(client, { ...created, migrations: [changed] })).rejects.toMatchObject({
    code: 'MIGRATION_REQUIRED',
    message: expect.stringContaining('was applied as "first" with another text'),
  })
})

test('a database that is newer than the code is left alone, and the log says so (B80)', async () => {
  const created = await createSchema({ migrated: false })
  const client = await created.connect()
  await applyMigrations(client, { ...created, migrations: [first, second] })
  const { logger, lines } = recordingLogger()
  expect(await applyMigrations(client, { ...created, migrations: [first], logger })).toEqual({ applied: [] })
  expect(lines).toEqual(['the database was migrated by a newer version of tenantry than this one'])
})

test.each(['MySchema', 'my-schema', 'select', 'a.b', 'a"b', "o'hara", 'back\\slash', '$&', 'схема', 'x'.repeat(63)])(
  'a schema may be called %s (B84)',
  async (schema) => {
    const created = await createSchema({ schema, migrated: false })
    const client = await created.connect()
    await client.query('set standard_conforming_strings = off')
    expect((await migrate(client, created)).applied).toEqual(MIGRATIONS.map(({ version }) => version))
    expect((await migrationStatus(client, created)).pending).toEqual([])
    expect(await tables(created)).toContain('migration')
  },
)

test('two schemas whose names differ in case only are two installations (B84)', async () => {
  const lower = await createSchema({ schema: 'look_alike' })
  const upper = await createSchema({ schema: 'Look_Alike' })
  expect(await tables(lower)).toEqual(await tables(upper))
  await upper.query(`drop table ${quoteSchema('Look_Alike')}.migration`)
  expect(await tables(lower)).toContain('migration')
})

describe('a role of its own', () => {
  async function roleWith(created: TestSchema, settings?: string): Promise<{ client: pg.Client; role: string }> {
    const { role, connectionString } = await createRole(created, settings)
    const [row] = await created.query<{ name: string }>('select quote_ident(current_database()) as name')
    await created.query(`grant create on database ${row?.name} to ${role}`)
    return { client: await created.connect({ connectionString }), role }
  }

  test('needs nothing but the right to create a schema', async () => {
    const created = await createSchema({ migrated: false })
    const { client } = await roleWith(created)
    const { rows } = await client.query('select rolsuper from pg_roles where rolname = current_user')
    expect(rows).toEqual([{ rolsuper: false }])
    expect((await migrate(client, created)).applied).toEqual(MIGRATIONS.map(({ version }) => version))
  })

  test('needs no right to create at all when there is nothing to do', async () => {
    const created = await createSchema()
    const { client, role } = await roleWith(created)
    await created.query(`grant usage on schema ${created.quoted} to ${role}`)
    await created.query(`grant select on ${created.quoted}.migration to ${role}`)
    const [row] = await created.query<{ name: string }>('select quote_ident(current_database()) as name')
    await created.query(`revoke create on database ${row?.name} from ${role}`)
    expect(await migrate(client, created)).toEqual({ applied: [] })
  })

  test('may have short timeouts (B77)', async () => {
    const created = await createSchema({ migrated: false })
    const { client } = await roleWith(created, "set statement_timeout = '300ms'")
    const slow: Migration = { version: 1, name: 'slow', text: 'select pg_sleep(0.5);' }
    expect(await applyMigrations(client, { ...created, migrations: [slow] })).toEqual({ applied: [1] })
  })

  test.each(['repeatable read', 'serializable'])('may have %s as its isolation level (B78)', async (level) => {
    const created = await createSchema({ migrated: false })
    const { client } = await roleWith(created, `set default_transaction_isolation = '${level}'`)
    const isolation: Migration = {
      version: 1,
      name: 'isolation',
      text: `create table :schema.level as select current_setting('transaction_isolation') as level;`,
    }
    await applyMigrations(client, { ...created, migrations: [isolation] })
    expect(await created.query(`select level from ${created.quoted}.level`)).toEqual([{ level: 'read committed' }])
  })

  test('may have read-only transactions and an empty search path as its defaults (B84)', async () => {
    const created = await createSchema({ migrated: false })
    const { client } = await roleWith(created, "set search_path = ''")
    await client.query('set default_transaction_read_only = on')
    expect((await migrate(client, created)).applied).toEqual(MIGRATIONS.map(({ version }) => version))
  })
})

test('the SQL for other tools leaves a database that migrate finds complete', async () => {
  const created = await createSchema({ migrated: false })
  const client = await created.connect()
  await client.query(`begin;\n${migrationSql(created)}\ncommit;`)
  expect(await migrate(client, created)).toEqual({ applied: [] })
})
