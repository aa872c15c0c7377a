import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { type CommandOptions, type Ended, runCommand } from '../support/command-line.js'
import { createSchema } from '../support/database.js'

async function commandLine() {
  const { schema } = await createSchema()
  const environment = { DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: schema }
  const run = (args: readonly string[], options: CommandOptions = {}) => runCommand(args, { environment, ...options })
  const parsed = async <T>(running: Promise<Ended>) => {
    const { exitCode, stdout, stderr } = await running
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    return JSON.parse(stdout) as T
  }
  return { run, parsed }
}

describe('enqueue', () => {
  it.each([
    '[]',
    '["a,b","{}"]',
    '"text"',
    '""',
    '"null"',
    '"123"',
    '0.12345678901234',
    'false',
    'null',
    '{"a":[[]],"__proto__":{"x":1}}',
  ])('keeps the payload %s as it is', async (payload) => {
    const { run, parsed } = await commandLine()
    const { stdout } = await run(['enqueue', 'greet', '--tenant', 'acme', '--payload', payload])
    expect(stdout).toMatch(/^\d+\n$/)
    const job = await parsed<{ payload: unknown }>(run(['jobs', 'show', stdout.trim(), '--json']))
    expect(JSON.stringify(job.payload)).toBe(payload)
  })

  it('reads the payload from a file and from stdin', async () => {
    const { run, parsed } = await commandLine()
    const folder = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'payload.json'), '{"from":"file"}\n')
    for (const [payload, stdin, expected] of [
      [`@${join(folder, 'payload.json')}`, '', { from: 'file' }],
      ['-', '{"from":"stdin"}', { from: 'stdin' }],
    ] as const) {
      const args = ['enqueue', 'greet', '--tenant', 'acme', '--json', '--payload', payload]
      const { id } = await parsed<{ id: string }>(run(args, { stdin }))
      expect(await parsed(run(['jobs', 'show', id, '--json']))).toMatchObject({ payload: expected })
    }
  })

  it('passes on every option, and treats names as data (B94)', async () => {
    const { run, parsed } = await commandLine()
    const tenant = `x' OR '1'='1 "; drop table job;-- $1 %`
    const options = ['--queue', 'a.b[0]', '--priority', '-7', '--max-attempts', '3', '--delay', '1h']
    const { id } = await parsed<{ id: string }>(run(['enqueue', '__proto__', '--tenant', tenant, '--json', ...options]))
    expect(await parsed(run(['jobs', 'show', id, '--json']))).toMatchObject({
      kind: '__proto__',
      tenant,
      queue: 'a.b[0]',
      priority: -7,
      maxAttempts: 3,
      state: 'scheduled',
      payload: {},
    })
  })

  it.each([
    [['enqueue', 'greet'], 2, "required option '--tenant <tenant>' not specified"],
    [['enqueue', 'greet', '--tenant', 'a', '--payload', '{"a":oops}'], 2, 'at line 1, column 6 it is not'],
    [['enqueue', 'greet', '--tenant', 'a', '--payload', '"\\u0000"'], 1, 'NUL'],
    [['enqueue', 'greet', '--tenant', ''], 78, 'expected tenant to be'],
    [['enqueue', 'greet', '--tenant', 'a', '--priority', '1e9'], 2, 'Expected a whole number from -1000 to 1000.'],
    [['jobs', 'show', '42'], 1, 'there is no job 42'],
    [['jobs', 'show', '1; drop table job'], 78, 'the decimal string that enqueue returned'],
    [['jobs', 'cancel', '42'], 1, 'job 42 does not wait'],
  ] as const)('refuses %j with %i and says why', async (args, exitCode, complaint) => {
    const { run } = await commandLine()
    const ended = await run(args)
    expect(ended).toMatchObject({ exitCode, stdout: '' })
    expect(ended.stderr).toContain(complaint)
  })
})

describe('jobs', () => {
  it('shows a job to people without letting its text control the terminal (B93)', async () => {
    const { run } = await commandLine()
    const { stdout: id } = await run(['enqueue', 'greet', '--tenant', 'ac\u001b[31mme', '--payload', '{"n":1}'])
    const { stdout } = await run(['jobs', 'show', id.trim()])
    expect(stdout).toContain('tenant      ac\\u001b[31mme\n')
    expect(stdout).toContain('state       available\n')
    expect(stdout).toContain('payload     {"n":1}\n')
  })

  it('cancels a job that waits, once', async () => {
    const { run, parsed } = await commandLine()
    const { stdout } = await run(['enqueue', 'greet', '--tenant', 'acme'])
    const id = stdout.trim()
    expect(await run(['jobs', 'cancel', id, '--reason', 'by hand'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await parsed(run(['jobs', 'show', id, '--json']))).toMatchObject({
      state: 'cancelled',
      errors: [{ message: 'by hand' }],
    })
    expect(await run(['jobs', 'cancel', id])).toMatchObject({ exitCode: 1 })
  })
})
