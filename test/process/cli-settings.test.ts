import { describe, expect, inject, it } from 'vitest'
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

describe('set and show', () => {
  it('set everything of a queue, tell it, and put it back with none (B13)', async () => {
    const { run, parsed } = await commandLine()
    const given: readonly (readonly [flag: string, value: string, name: string, told: unknown])[] = [
      ['--history', 'none', 'history', 'none'],
      ['--charge', 'time', 'charge', 'time'],
      ['--concurrency', '0', 'concurrency', 0],
      ['--rate', '100/m burst 9', 'rate', { limit: 100, perMs: 60_000, burst: 9 }],
      ['--quota', '1000000000', 'quota', 1_000_000_000],
      ['--tenant-concurrency', '5', 'tenantConcurrency', 5],
      ['--tenant-rate', '5/10s', 'tenantRate', { limit: 30, perMs: 60_000, burst: 1 }],
      ['--tenant-quota', '7', 'tenantQuota', 7],
      ['--key-concurrency', '3', 'keyConcurrency', 3],
      ['--key-rate', '1/h', 'keyRate', { limit: 1, perMs: 3_600_000, burst: 1 }],
      ['--objective', '99.9%/1.5s', 'objective', { waitMs: 1_500, share: 0.999 }],
    ]
    const flags = given.map(([flag, value]) => `${flag}=${value}`)
    const told = Object.fromEntries(given.map(([, , name, value]) => [name, value]))
    expect(await parsed(run(['queues', 'set', 'mail', ...flags, '--json']))).toEqual({
      queue: 'mail',
      strategy: 'fair',
      ...told,
      pausedAt: null,
    })
    const { stdout } = await run(['queues', 'show', 'mail'])
    expect(stdout).toContain('rate                100/m burst 9\n')
    expect(stdout).toContain('objective           99.9%/1500ms\n')
    const back = given.flatMap(([flag, , name]) => [flag, name === 'history' ? 'keep' : 'none'])
    expect(await parsed(run(['queues', 'set', 'mail', ...back, '--json']))).toMatchObject({
      charge: 'jobs',
      rate: null,
      keyConcurrency: 1,
      objective: null,
    })
  })

  it('set tenants, groups, kinds and keys of a queue, and of the default one', async () => {
    const { run, parsed } = await commandLine()
    const flags = ['--weight', '0.5', '--group', 'corp', '--quota', '5', '--rate', '2.5/s']
    await run(['tenants', 'set', 'acme', '--queue', 'mail', ...flags])
    expect(await parsed(run(['tenants', 'show', 'acme', '--queue', 'mail', '--json']))).toEqual({
      queue: 'mail',
      tenant: 'acme',
      weight: 0.5,
      group: 'corp',
      concurrency: null,
      rate: { limit: 150, perMs: 60_000, burst: 3 },
      quota: 5,
      objective: null,
      pausedAt: null,
    })
    expect(await parsed(run(['tenants', 'show', 'acme', '--json']))).toMatchObject({ queue: 'default', weight: 1 })
    const group = ['groups', 'set', 'corp', '--weight', '4', '--json']
    expect(await parsed(run(group))).toEqual({ queue: 'default', group: 'corp', weight: 4, objective: null })
    const kind = ['kinds', 'set', 'render', '--concurrency', '2', '--queue', 'mail', '--json']
    expect(await parsed(run(kind))).toMatchObject({ queue: 'mail', kind: 'render', concurrency: 2 })
    const key = ['keys', 'set', 'api', '--rate', '10/s', '--json']
    expect(await parsed(run(key))).toMatchObject({ key: 'api', rate: { limit: 10, perMs: 1_000, burst: 10 } })
  })

  it.each([
    [['tenants', 'set', 'a', '--weight', '3x'], 2, 'expected weight to be a number from 0.001 to 1000, got "3x"'],
    [['tenants', 'set', '', '--weight', '2'], 78, 'expected tenant to be a string of 1 to 255 bytes'],
    [['tenants', 'set', 'a'], 2, 'nothing to set; see tenantry tenants set --help'],
  ] as const)('refuses %j with %i and says why (B16)', async (args, exitCode, complaint) => {
    const { run } = await commandLine()
    const ended = await run(args)
    expect(ended).toMatchObject({ exitCode, stdout: '' })
    expect(ended.stderr.replaceAll(/\s+/g, ' ')).toContain(complaint)
  })

  it('say what the strategy of a queue cannot do', async () => {
    const { run } = await commandLine()
    await run(['queues', 'set', 'plain', '--strategy', 'fifo'])
    const { exitCode, stderr } = await run(['tenants', 'set', 'a', '--queue', 'plain', '--concurrency', '3'])
    expect(exitCode).toBe(78)
    expect(stderr).toContain(`expected the strategy of queue "plain" to be 'fair', which concurrency of a tenant needs`)
  })
})

describe('list', () => {
  it('prints the queues with what waits', async () => {
    const { run, parsed } = await commandLine()
    await run(['enqueue', 'greet', '--tenant', 'acme', '--queue', 'mail'])
    await run(['pause', 'mail'])
    expect(await parsed(run(['queues', 'list', '--json']))).toMatchObject([
      { queue: 'mail', available: 1, paused: true },
    ])
    const listed = await run(['queues', 'list'])
    expect(listed.stdout).toMatch(/^mail +fair +1 .* paused$/m)
    expect(await run(['queues'])).toEqual(listed)
    expect(await parsed(run(['queues', '--json']))).toHaveLength(1)
  })

  it('is what tenants does too', async () => {
    const { run, parsed } = await commandLine()
    await run(['enqueue', 'greet', '--tenant', 'acme', '--queue', 'mail'])
    for (const args of [['tenants'], ['tenants', 'list']]) {
      expect(await parsed(run([...args, '--queue', 'mail', '--json']))).toMatchObject([{ tenant: 'acme' }])
    }
  })
})
