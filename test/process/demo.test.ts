import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import type { Comparison } from '../../src/workload/comparison.js'
import { runCommand, startCommand } from '../support/command-line.js'
import { until } from '../support/until.js'

const FIGURES = ['claimMs', 'doubleClaims', 'fair', 'jobsPerSecond', 'lastQuietStart', 'noisyWaitMs', 'quietWaitMs']
const WAIT = {
  mean: expect.any(Number),
  p50: expect.any(Number),
  p95: expect.any(Number),
  p99: expect.any(Number),
  max: expect.any(Number),
}

describe('demo', () => {
  it('runs the noisy neighbour through FIFO and fair on the named server, and leaves nothing behind', async () => {
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const { exitCode, stdout, stderr } = await runCommand(['demo', '--json'], { environment })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining('using postgres://') })
    const figures = JSON.parse(stdout) as Comparison
    expect(Object.keys(figures)).toEqual(['fifo', 'fair'])
    for (const each of [figures.fifo, figures.fair]) {
      expect(Object.keys(each).toSorted()).toEqual(FIGURES.filter((key) => key !== 'fair'))
      expect(each).toMatchObject({
        quietWaitMs: WAIT,
        noisyWaitMs: WAIT,
        claimMs: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
        jobsPerSecond: expect.any(Number),
        doubleClaims: 0,
      })
    }
    expect(figures.fifo.lastQuietStart).toBe(1_050)
    expect(figures.fair.lastQuietStart).toBeGreaterThanOrEqual(50)
    expect(figures.fair.lastQuietStart).toBeLessThanOrEqual(60)
    expect(await exists(schemaOf(stderr))).toBe(false)
  })

  it('starts a server of its own when none is named, and prints a table', async () => {
    const temporary = await temporaryDirectory()
    const { exitCode, stdout } = await runCommand(['demo'], { environment: { TMPDIR: temporary } })
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/last quiet job started as number +1,050 +(5\d|60)\n/)
    expect(stdout).toMatch(/noisy tenants wait, p99 \(ms\) +[\d,.]+ +[\d,.]+\n/)
    expect(stdout).not.toContain('\u001b')
    expect(readdirSync(temporary)).toEqual([])
  })

  it.each([
    ['SIGINT', 130, 'starting PostgreSQL'],
    ['SIGTERM', 143, 'starting PostgreSQL'],
  ] as const)(
    'stopped by %s while the server starts exits with %i and leaves no server',
    async (signal, code, sign) => {
      const temporary = await temporaryDirectory()
      const demo = startCommand(['demo'], { environment: { TMPDIR: temporary } })
      await until(() => demo.stderr().includes(sign), { until: `the demo says "${sign}"` })
      demo.process.kill(signal)
      expect((await demo.ended).exitCode).toBe(code)
      expect(readdirSync(temporary)).toEqual([])
    },
  )

  it('stopped by Ctrl-C while jobs run exits with 130 and leaves no schema and no session', async () => {
    const demo = startCommand(['demo'], { environment: { DATABASE_URL: inject('databaseUrl') } })
    const schema = await until(() => schemaOf(demo.stderr()), { until: 'the demo names its schema' })
    await until(() => hasRunningJob(schema), { until: 'a job of the demo runs' })
    demo.process.kill('SIGINT')
    expect(await demo.ended).toMatchObject({ exitCode: 130, stdout: '' })
    expect(await exists(schema)).toBe(false)
  })

  it('fails in one line when the named server is not there', async () => {
    const { exitCode, stdout, stderr } = await runCommand(['demo'], {
      environment: { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' },
    })
    expect({ exitCode, stdout }).toEqual({ exitCode: 69, stdout: '' })
    expect(stderr).toMatch(/tenantry: .*ECONNREFUSED/)
    expect(stderr).not.toMatch(/hunter2|\n {4}at /)
  })
})

async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenantry-demo-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** The schema that a demo says it works in; empty when it has not said so yet. */
function schemaOf(stderr: string): string {
  return /working in the schema (\w+)/.exec(stderr)?.[1] ?? ''
}

async function exists(schema: string): Promise<boolean> {
  expect(schema).toMatch(/^tenantry_scratch_/)
  return (await query('select from pg_namespace where nspname = $1', [schema])).length > 0
}

async function hasRunningJob(schema: string): Promise<boolean> {
  const found = await query(`select from ${pg.escapeIdentifier(schema)}.job where state = 'running' limit 1`).catch(
    () => [], // The tables are not there yet.
  )
  return found.length > 0
}

async function query(text: string, values: readonly unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: inject('databaseUrl') })
  await client.connect()
  try {
    return (await client.query(text, [...values])).rows
  } finally {
    await client.end()
  }
}
