import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import type { Comparison } from '../../src/workload/comparison.js'
import { runCommand } from '../support/command-line.js'

const SLICE = fileURLToPath(new URL('../fixtures/nasa-ipsc-slice.swf', import.meta.url))

interface Replayed extends Comparison {
  readonly jobs: { readonly noisy: number; readonly quiet: number }
  readonly tenants: { readonly noisy: number; readonly quiet: number }
  readonly compress: number
  readonly skippedLines: number
}

describe('replay', () => {
  it('runs a recorded log through FIFO and fair and compares the classes of tenants', async () => {
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const { exitCode, stdout, stderr } = await runCommand(['replay', SLICE, '--compress', '200000', '--json'], {
      environment,
    })
    expect(stderr).toContain('replaying 400 jobs with all times divided by 200,000')
    expect(exitCode).toBe(0)
    const replayed = JSON.parse(stdout) as Replayed
    expect(replayed).toMatchObject({
      jobs: { noisy: 213, quiet: 187 },
      tenants: { noisy: 4, quiet: 20 },
      compress: 200_000,
      skippedLines: 0,
      fifo: { doubleClaims: 0, quietWaitMs: { max: expect.any(Number) }, noisyWaitMs: { max: expect.any(Number) } },
      fair: { doubleClaims: 0, quietWaitMs: { max: expect.any(Number) }, noisyWaitMs: { max: expect.any(Number) } },
    })
    for (const each of [replayed.fifo, replayed.fair]) {
      expect(each.quietWaitMs?.max).toBeGreaterThan(0)
      expect(each.jobsPerSecond).toBeGreaterThan(0)
    }
  })

  it('reports the lines that it skips by number and replays the rest of a gzipped log', async () => {
    const lines = (await readFile(SLICE, 'utf8')).split('\n')
    const first = lines.findIndex((line) => line !== '' && !line.startsWith(';'))
    lines[first + 1] = 'this is no job'
    lines[first + 2] = (lines[first + 2] ?? '').replace(/^(\s*\S+\s+\S+\s+\S+\s+)\S+/, '$1-1')
    const file = await saved(gzipSync(lines.join('\n')))
    const environment = { DATABASE_URL: inject('databaseUrl') }
    const { exitCode, stdout, stderr } = await runCommand(['replay', file, '--compress', '1000000', '--limit', '20'], {
      environment,
    })
    expect(stderr).toContain(`line ${first + 2} skipped: expected 18 fields, got 4\n`)
    expect(stderr).toContain(`line ${first + 3} skipped: run time (field 4) is not known: -1\n`)
    expect(stderr).toContain('replaying 20 jobs')
    expect(exitCode).toBe(0)
    expect(stdout).toContain('noisy = the fewest tenants that together enqueued half of the jobs')
    expect(stdout).toContain('Acknowledge: Bill Nitzberg')
    expect(stdout).toMatch(/quiet tenants wait, p95 \(ms\) +[\d,.]+ +[\d,.]+\n/)
  })

  it.each([
    ['an empty file', '', 'the file is empty'],
    ['a picture', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00]), 'it holds binary data'],
    ['a CSV file', 'submit,run\n1,2\n', 'line 1: expected 18 fields, got 1'],
  ])('refuses %s in one line, before it starts anything', async (_, content, reason) => {
    const file = await saved(content)
    const { exitCode, stdout, stderr } = await runCommand(['replay', file])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(/^tenantry: .* is not in Standard Workload Format.*\n$/)
    expect(stderr).toContain(reason)
  })

  it('says which file is missing', async () => {
    const { exitCode, stderr } = await runCommand(['replay', '/no/such/log.swf'])
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^tenantry: cannot read \/no\/such\/log\.swf: there is no such file\n$/)
  })

  it('refuses a replay that would take days, and says which factor would do', async () => {
    const { exitCode, stderr } = await runCommand(['replay', SLICE, '--compress', '2'])
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(
      /^tenantry: each run of this replay would take 45 hours; raise --compress: 13000 makes it 24\.2 s/,
    )
  })
})

async function saved(content: string | Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenantry-replay-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'log')
  await writeFile(path, content)
  return path
}
