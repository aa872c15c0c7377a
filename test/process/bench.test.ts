import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import type { ClaimBenchResult } from '../../src/bench/claim-bench.js'
import type { LatencyBenchResult } from '../../src/bench/latency-bench.js'
import { runCommand, startCommand } from '../support/command-line.js'
import { until } from '../support/until.js'

const NUMBER = expect.any(Number)
const SPREAD = { min: NUMBER, max: NUMBER }

describe('bench', () => {
  it('claim measures FIFO and fair on the named server, prints one JSON document and leaves nothing behind', async () => {
    const before = await schemas()
    const file = join(await temporaryDirectory(), 'claim.json')
    const args = ['bench', 'claim', '--json', '--quick', '--runs', '1', '--only', 'tenants-11', '--with', 'round-robin']
    const { exitCode, stdout, stderr } = await runCommand([...args, '--save', file], { environment: environment() })
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
    const { results, comparisons, environment: place } = JSON.parse(stdout) as ClaimBenchResult
    expect(results.map(({ strategy }) => strategy)).toEqual(['fifo', 'fair', 'round-robin'])
    for (const result of results) {
      expect(result).toMatchObject({
        scenario: 'tenants-11',
        activeTenants: 11,
        idleTenants: 0,
        backlog: 10_000,
        historyJobs: 0,
        connections: 4,
        batch: 50,
        runs: 1,
        walBytesPerJob: NUMBER,
        jobsPerSecond: NUMBER,
        claimMs: { p50: NUMBER, p95: NUMBER, p99: NUMBER },
        spread: { walBytesPerJob: SPREAD, jobsPerSecond: SPREAD },
      })
      expect(Object.keys(result)).toEqual(Object.keys(results[0] ?? {}))
      // The server's processes can be seen on Linux only.
      if (place.serverCpu) expect(result.serverUsPerJob).toBeGreaterThan(0)
      else expect(result.serverUsPerJob).toBeNull()
    }
    expect(comparisons.map(({ metric, against }) => `${metric} ${against}`)).toEqual([
      'serverUsPerJob fifo',
      'buffersPerJob fifo',
      'walBytesPerJob fifo',
    ])
    expect(place).toMatchObject({
      server: 'given',
      cores: NUMBER,
      loadBefore: NUMBER,
      settings: { synchronous_commit: expect.any(String) },
    })
    expect(await readFile(file, 'utf8')).toBe(stdout)
    expect(await readFile(file.replace('.json', '.md'), 'utf8')).toContain(
      'Made by `npx tenantry bench claim --runs 1 --only tenants-11 --with round-robin --quick`',
    )
    expect(await schemas()).toEqual(before)
  })

  it('claim measures a queue with settings beside the same without what is measured', async () => {
    const args = ['bench', 'claim', '--json', '--quick', '--runs', '1', '--only', 'parked-100']
    const { exitCode, stdout } = await runCommand(args, { environment: environment() })
    expect(exitCode).toBe(0)
    const { results, comparisons } = JSON.parse(stdout) as ClaimBenchResult
    expect(results.map(({ scenario, governance }) => [scenario, governance])).toEqual([
      ['parked-0', { parked: { tenants: 0, backlog: 20 } }],
      ['parked-100', { parked: { tenants: 10, backlog: 20 } }],
    ])
    expect(comparisons).toMatchObject([{ scenario: 'parked-100', against: 'parked-0', most: 1.1 }])
  })

  it('latency measures with LISTEN and by polling, and how soon a slot of a limit is used again', async () => {
    const args = ['bench', 'latency', '--json', '--samples', '10']
    const { exitCode, stdout } = await runCommand(args, { environment: environment() })
    expect(exitCode).toBe(0)
    const { results, slots, targets } = JSON.parse(stdout) as LatencyBenchResult
    expect(results.map(({ wakeUp }) => wakeUp)).toEqual(['listen', 'poll'])
    for (const { commitToStartMs, confirmationToStartMs } of results) {
      expect(commitToStartMs.p50).toBeGreaterThan(0)
      expect(confirmationToStartMs.p50).toBeLessThan(commitToStartMs.p50)
    }
    expect(slots.map(({ limit, wakeUp, processes }) => [limit, wakeUp, processes])).toEqual([
      ['tenant', 'listen', 1],
      ['tenant', 'listen', 2],
      ['key', 'listen', 1],
      ['key', 'listen', 2],
      ['tenant', 'poll', 1],
    ])
    for (const { samples, endToStartMs } of slots) {
      expect(samples).toBe(10)
      expect(endToStartMs.p50).toBeGreaterThan(0)
    }
    expect(targets.map(({ measured, percentile, mostMs }) => [measured, percentile, mostMs])).toEqual([
      ['listen', 'p50', 3],
      ['listen', 'p99', 15],
      ['slot of a tenant, listen, 1 process', 'p99', 50],
      ['slot of a tenant, listen, 2 processes', 'p99', 50],
      ['slot of a key, listen, 1 process', 'p99', 50],
      ['slot of a key, listen, 2 processes', 'p99', 50],
      ['slot of a tenant, poll, 1 process', 'p99', 50],
    ])
  })

  it('refuses a scenario that is not there and names those that are', async () => {
    const { exitCode, stdout, stderr } = await runCommand(['bench', 'claim', '--only', 'everything'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('tenants-50000')
  })

  it('stopped by Ctrl-C exits with 130 and leaves no schema', async () => {
    const before = await schemas()
    const bench = startCommand(['bench', 'claim', '--only', 'tenants-1'], { environment: environment() })
    await until(async () => (await schemas()).length > before.length, { until: 'the benchmark has made a schema' })
    bench.process.kill('SIGINT')
    expect(await bench.ended).toMatchObject({ exitCode: 130, stdout: '' })
    expect(await schemas()).toEqual(before)
  })
})

function environment() {
  return { DATABASE_URL: inject('databaseUrl') }
}

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenantry-bench-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** The schemas of benchmarks on the test server. */
async function schemas(): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: inject('databaseUrl') })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      "select nspname as name from pg_namespace where nspname like 'tenantry\\_bench\\_%' order by nspname",
    )
    return rows.map(({ name }) => name)
  } finally {
    await client.end()
  }
}
