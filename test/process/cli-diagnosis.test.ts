import { describe, expect, inject, it } from 'vitest'
import { type CommandOptions, runCommand } from '../support/command-line.js'
import { createSchema } from '../support/database.js'

async function commandLine() {
  const created = await createSchema()
  const environment = { DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: created.schema }
  const run = (args: readonly string[], options: CommandOptions = {}) => runCommand(args, { environment, ...options })
  const enqueue = async (...args: readonly string[]) =>
    (await run(['enqueue', 'greet', '--tenant', 'acme', ...args])).stdout.trim()
  return { ...created, run, enqueue }
}

describe('why', () => {
  it('explains a job in sentences, with the command and the call that would change it', async () => {
    const { run, enqueue, query, quoted } = await commandLine()
    const id = await enqueue()
    await query(`select ${quoted}.pause('default', '{"tenant": "acme"}')`)
    const { exitCode, stdout, stderr } = await run(['why', id])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const lines = stdout.split('\n')
    expect(lines[0]).toBe('tenant_paused')
    expect(lines[1]).toMatch(/^Tenant "acme" of queue "default" has been paused for .*; none of its jobs starts\.$/)
    expect(lines[2]).toBe('  - Resume tenant "acme" of queue "default".')
    expect(stdout).toContain(`await tenantry.resume('default', { tenant: 'acme' })`)
  })

  it.each([
    ['tenant_paused', `pause('default', '{"tenant": "acme"}')`],
    ['kind_paused', `pause('default', '{"kind": "greet"}')`],
    ['queue_paused', `pause('default')`],
    ['queue_limit', `configure_queue('default', '{"concurrency": 0}')`],
    ['kind_limit', `configure_kind('default', 'greet', '{"concurrency": 0}')`],
    ['tenant_limit', `configure_tenant('default', 'acme', '{"concurrency": 0}')`],
    ['tenant_limit', `configure_queue('default', '{"tenant_concurrency": 0}')`],
    ['key_limit', `configure_key('default', 'k', '{"concurrency": 0}')`],
  ])('%s: the command that it names ends it (%s)', async (rule, statement) => {
    const { run, enqueue, query, quoted } = await commandLine()
    const id = await enqueue('--key', 'k')
    await query(`select ${quoted}.${statement}`)
    const why = async () =>
      JSON.parse((await run(['why', id, '--json'])).stdout) as {
        rule: string
        remedies: readonly { command: string }[]
      }
    const before = await why()
    expect(before.rule).toBe(rule)
    const [program, name, ...args] = before.remedies[0]?.command.split(' ') ?? []
    expect([program, name]).toEqual(['npx', 'tenantry'])
    expect(await run(args)).toMatchObject({ exitCode: 0 })
    expect((await why()).rule).toBe('no_worker')
  })

  it('the command that raises a rate is one that the command line takes', async () => {
    const { run, enqueue, query, quoted } = await commandLine()
    const id = await enqueue()
    await query(`select ${quoted}.beat_v1('w', '{default}', '{greet}', 5, 0, 0)`)
    await query(
      `select ${quoted}.configure_queue('default', '{"tenant_rate": {"limit": 1, "per_ms": 3600000, "burst": 1}}')`,
    )
    await query(`insert into ${quoted}.bucket values ('default', 'tenant', 'acme', now() + interval '1 h')`)
    const { rule, remedies } = JSON.parse((await run(['why', id, '--json'])).stdout)
    expect(rule).toBe('tenant_rate')
    const [, , ...args] = remedies[1].command.split(' ')
    expect(await run(args)).toMatchObject({ exitCode: 0 })
    const [row] = await query<{ rate: number }>(`select tenant_rate_per_second as rate from ${quoted}.queue`)
    expect(row?.rate).toBeCloseTo(2 / 3_600, 6)
  })

  it('explains a tenant, of a queue and a kind, and prints JSON', async () => {
    const { run, enqueue } = await commandLine()
    const id = await enqueue('--queue', 'mail')
    const { exitCode, stdout } = await run(['why', '--tenant', 'acme', '--queue', 'mail', '--kind', 'greet', '--json'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      rule: 'no_worker',
      job: id,
      knownKinds: [],
      explanation: 'No worker claims from queue "mail".',
      remedies: [{ sentence: 'Start a worker for queue "mail" with a handler for kind "greet".' }],
    })
    expect(JSON.parse((await run(['why', '--tenant', 'acme', '--json'])).stdout)).toMatchObject({
      rule: 'no_jobs',
      queue: 'default',
    })
  })

  it('lets no name reach the terminal as it is', async () => {
    const { run } = await commandLine()
    const { stdout } = await run(['why', '--tenant', '\u001b[2Jacme'])
    expect(stdout).not.toContain('\u001b')
    expect(stdout).toContain('\\u001b[2Jacme')
  })

  it.each([
    [['why'], 2, 'nothing to ask about; give the id of a job, or --tenant'],
    [['why', '1', '--tenant', 'acme'], 2, 'give the id of a job, or --tenant with --queue and --kind, not both'],
    [['why', 'x'], 78, 'expected the id of a job to be'],
    [['why', '--tenant', ''], 78, 'expected tenant to be'],
  ])('%j ends with %i and a sentence', async (args, exitCode, message) => {
    const { run } = await commandLine()
    const ended = await run(args)
    expect(ended).toMatchObject({ exitCode, stdout: '' })
    expect(ended.stderr).toContain(message)
  })
})

describe('doctor', () => {
  it('ends with 0 when all is well', async () => {
    const { run, schema } = await commandLine()
    const { exitCode, stdout, stderr } = await run(['doctor'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe('ok       schema: The schema is that of this version.')
    expect(stdout).not.toContain('wrong')
    const { checks, schema: named } = JSON.parse((await run(['doctor', '--json'])).stdout)
    expect(named).toBe(schema)
    expect(checks).toHaveLength(14)
  })

  it('ends with 1 when something is wrong, says what, and what to do', async () => {
    const { run, enqueue } = await commandLine()
    await enqueue()
    const { exitCode, stdout, stderr } = await run(['doctor'])
    expect(exitCode).toBe(1)
    expect(stderr).toBe('tenantry: 1 check of 14 found something wrong\n')
    expect(stdout).toContain('wrong    workers: Every kind with jobs that are due has a worker.\n')
    expect(stdout).toContain(
      '    Kind "greet" of queue "default" has jobs that are due (1 available job), and no worker knows it.\n',
    )
    expect(stdout).toContain('    > Start a worker for the queue with a handler for the kind.\n')
    const json = await run(['doctor', '--json'])
    expect(json.exitCode).toBe(1)
    expect(JSON.parse(json.stdout).checks.find((each: { check: string }) => each.check === 'workers')).toMatchObject({
      verdict: 'wrong',
    })
  })

  it('of a schema that was never migrated says so', async () => {
    const { run } = await commandLine()
    const { exitCode, stdout } = await run(['doctor', '--schema', 'no_such_schema'])
    expect(exitCode).toBe(1)
    expect(stdout).toContain('The schema was never migrated.')
    expect(stdout).toContain('npx tenantry migrate')
  })
})
