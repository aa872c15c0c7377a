import { readFileSync } from 'node:fs'
import { describe, expect, inject, it } from 'vitest'
import { runCommand } from '../support/command-line.js'
import { createSchema } from '../support/database.js'
import { createRole } from '../support/role.js'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

describe('the program', () => {
  it('prints its version', async () => {
    expect(await runCommand(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
  })

  it.each([
    [['--help'], 'tenantry [options]'],
    [['help', 'migrate'], 'tenantry migrate'],
    [['demo', '-h'], 'tenantry demo'],
    [['migrate', '-h'], 'tenantry migrate'],
    [['migrate', 'status', '--help'], 'tenantry migrate status'],
    [['migrate', 'sql', '-h'], 'tenantry migrate sql'],
    [['replay', '-h'], 'tenantry replay [options] <file>'],
    [['enqueue', '-h'], 'tenantry enqueue [options] <kind>'],
    [['jobs', '-h'], 'tenantry jobs'],
    [['jobs', 'show', '-h'], 'tenantry jobs show'],
    [['jobs', 'cancel', '-h'], 'tenantry jobs cancel'],
    [['queues', '-h'], 'tenantry queues'],
    [['queues', 'set', '-h'], 'tenantry queues set'],
    [['bench', 'claim', '-h'], 'tenantry bench claim'],
  ])('prints help with an example on stdout for %j', async (args, usage) => {
    const { exitCode, stdout, stderr } = await runCommand(args)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain(`Usage: ${usage}`)
    expect(stdout).toMatch(/Examples?:\n {2}\$ tenantry /)
  })

  it.each([
    [['migrat'], 'Did you mean migrate?'],
    [['demo', '--jsn'], 'Did you mean --json?'],
    [['demo', '--workers', '0'], "argument '0' is invalid. Expected a whole number from 1 to 64."],
    [['replay'], "missing required argument 'file'"],
    [['replay', 'x.swf', '--compress', '-3'], "argument '-3' is invalid. Expected a number above zero."],
  ])('says of %j what is wrong, and exits with 2', async (args, complaint) => {
    const { exitCode, stdout, stderr } = await runCommand(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(complaint)
    expect(stderr).toMatch(/Run `tenantry.* --help` for the options\./)
  })

  it('without a command prints the help on stderr, and exits with 2', async () => {
    const { exitCode, stdout, stderr } = await runCommand([])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('Usage: tenantry')
  })
})

describe('errors', () => {
  it('exit with 78 when no database is named, and say how to name one', async () => {
    const { exitCode, stderr } = await runCommand(['migrate'])
    expect(exitCode).toBe(78)
    expect(stderr).toMatch(/^tenantry: no database is named; set TENANTRY_DATABASE_URL or DATABASE_URL .*\n$/)
  })

  it('exit with 69 when the database is not there, name it without its password, and show no stack', async () => {
    const environment = { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' }
    const { exitCode, stderr } = await runCommand(['migrate'], { environment })
    expect(exitCode).toBe(69)
    expect(stderr).toContain('cannot connect to postgres://u:***@127.0.0.1:1/d (from DATABASE_URL)')
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).not.toContain('hunter2')
  })

  it('show the stack to those who ask for it', async () => {
    const environment = { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d', DEBUG: '1' }
    const { stderr } = await runCommand(['migrate'], { environment })
    expect(stderr).toMatch(/\n {4}at /)
    expect(stderr).not.toContain('hunter2')
  })

  it('exit with 78 for a database or a schema that cannot exist', async () => {
    const url = new URL(inject('databaseUrl'))
    url.pathname = '/there-is-no-such-database'
    const missing = await runCommand(['migrate'], { environment: { DATABASE_URL: url.href } })
    expect(missing).toMatchObject({ exitCode: 78, stdout: '' })
    expect(missing.stderr).toContain('; create it: createdb there-is-no-such-database')
    const environment = { DATABASE_URL: inject('databaseUrl') }
    expect(await runCommand(['migrate', '--schema', 'pg_x'], { environment })).toMatchObject({ exitCode: 78 })
  })
})

describe('grants', () => {
  it('that are missing are named by migrate and by demo, with exit code 77', async () => {
    const created = await createSchema({ migrated: false })
    const { connectionString } = await createRole(created)
    const environment = { DATABASE_URL: connectionString }
    for (const args of [['migrate', '--schema', `${created.schema}_x`], ['demo']]) {
      const { exitCode, stderr } = await runCommand(args, { environment })
      expect(exitCode).toBe(77)
      expect(stderr).toMatch(
        /permission denied for database .*; grant create on database \S+ to the role; see docs\/operations\.md\n$/,
      )
    }
  })
})

describe('migrate', () => {
  it('creates the tables once, in a schema of any name (B94)', async () => {
    const { schema, query } = await createSchema({ schema: `cli "x'; \\ $1 %`, migrated: false })
    const environment = { TENANTRY_DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: schema }
    const first = await runCommand(['migrate', '--json'], { environment })
    expect(first).toMatchObject({ exitCode: 0, stderr: '' })
    const { applied } = JSON.parse(first.stdout) as { applied: number[] }
    expect(applied[0]).toBe(1)
    const again = await runCommand(['migrate', '--json'], { environment })
    expect(JSON.parse(again.stdout)).toEqual({ schema, applied: [] })
    const tables = await query<{ tablename: string }>('select tablename from pg_tables where schemaname = $1', [schema])
    expect(tables.map(({ tablename }) => tablename)).toContain('migration')
  })

  it('prints with --dry-run what it would do, and does nothing', async () => {
    const { schema, query } = await createSchema({ migrated: false })
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const { exitCode, stdout } = await runCommand(['migrate', '--dry-run', '--schema', schema], { environment })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^version {2}name +state\n +1 {2}\w+ +pending\n/)
    expect(await query('select from pg_tables where schemaname = $1', [schema])).toEqual([])
  })

  it('reports applied and pending migrations as JSON', async () => {
    const { schema } = await createSchema({ migrated: false })
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const status = async () => {
      const { stdout } = await runCommand(['migrate', 'status', '--json', '--schema', schema], { environment })
      return JSON.parse(stdout) as { schema: string; applied: unknown[]; pending: unknown[] }
    }
    const before = await status()
    expect(before).toMatchObject({ schema, applied: [], pending: [{ version: 1 }, ...before.pending.slice(1)] })
    await runCommand(['migrate', '--schema', schema], { environment })
    const after = await status()
    expect(after.pending).toEqual([])
    expect(after.applied).toHaveLength(before.pending.length)
  })

  it('prints SQL that another tool can apply, and then has nothing to do', async () => {
    const { schema, query } = await createSchema({ migrated: false })
    const { exitCode, stdout, stderr } = await runCommand(['migrate', 'sql', '--schema', schema])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    await query(`begin; ${stdout}; commit`)
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const { stdout: report } = await runCommand(['migrate', '--json', '--schema', schema], { environment })
    expect(JSON.parse(report)).toEqual({ schema, applied: [] })
  })
})
