import { fileURLToPath } from 'node:url'
import { describe, expect, inject, it } from 'vitest'
import type { Simulated } from '../../src/simulate/simulate.js'
import { runCommand } from '../support/command-line.js'

const SLICE = fileURLToPath(new URL('../fixtures/nasa-ipsc-slice.swf', import.meta.url))

describe('simulate', () => {
  it('runs a workload without a database and prints shares and waits beside those of FIFO', async () => {
    const { exitCode, stdout, stderr } = await runCommand(['simulate', 'noisy', '--jobs', '2000', '--rows', '3'])
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^tenant +jobs +share +entitled +wait p50 +p95 +p99 +FIFO p50/)
    expect(stdout).toMatch(/^tenant-1 +1,000 +\d+\.\d\d % +\d+\.\d\d % /m)
    expect(stdout).toMatch(/Jain's index of received over entitled: (1\.0000|0\.9\d+) fair, 0\.\d+ FIFO\./)
    expect(stderr).toContain('17 more tenants')
  })

  it('reads a recorded log, and prints JSON', async () => {
    const { exitCode, stdout } = await runCommand(['simulate', SLICE, '--slots', '2', '--charge', 'time', '--json'])
    expect(exitCode).toBe(0)
    const { fair, fifo } = JSON.parse(stdout) as Simulated
    expect([fair.dispatches, fifo.dispatches]).toEqual([400, 400])
    expect(fair.tenants).toHaveLength(24)
  })

  it.each([
    [['--weight', 'a=0'], 'expected --weight to be a number from 0.001 to 1000, got 0'],
    [['--weight', 'a=NaN'], 'expected --weight to be a number from 0.001 to 1000, got NaN'],
    [['--concurrency', 'a=1.5'], 'expected --concurrency to be an integer, got 1.5'],
    [['--weight', 'a'], 'Expected name=value.'],
    [['--slots', '0'], 'Expected a whole number from 1 to 100000.'],
  ])('refuses %j', async (args, message) => {
    const { exitCode, stdout, stderr } = await runCommand(['simulate', ...args])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('says which file is missing', async () => {
    const { exitCode, stderr } = await runCommand(['simulate', '/no/such/log.swf'])
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: 'tenantry: cannot read /no/such/log.swf: there is no such file\n',
    })
  })

  it('finds nothing to start in a live queue that is empty', async () => {
    const environment = { DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: 'simulate_cli' }
    expect((await runCommand(['migrate'], { environment })).exitCode).toBe(0)
    const { exitCode, stdout, stderr } = await runCommand(['simulate', '--live', 'default'], { environment })
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'nothing of this queue would start now\n',
    })
    await runCommand(['enqueue', 'greet', '--tenant', 'acme'], { environment })
    const live = await runCommand(['simulate', '--live', 'default', '--weight', 'acme=4', '--json'], { environment })
    expect(JSON.parse(live.stdout)).toMatchObject({
      dispatches: 1,
      order: ['acme'],
      tenants: [{ tenant: 'acme', first: 1 }],
    })
  })
})
