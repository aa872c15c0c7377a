import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { busiestTenants, compress, readTrace, suggestCompression, suggestSlots, type Trace } from './trace.js'

const SLICE = fileURLToPath(new URL('../../test/fixtures/nasa-ipsc-slice.swf', import.meta.url))

const trace = (...jobs: readonly (readonly [submitS: number, runS: number, user: number])[]): Trace => ({
  jobs: jobs.map(([submitS, runS, user]) => ({ submitS, runS, user })),
  header: [],
  skipped: [],
  skippedCount: 0,
})
const job = (tenant: string, durationMs: number) => ({ tenant, dueMs: 0, durationMs })

async function withFile<T>(text: string, use: (path: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'tenantry-trace-'))
  try {
    const path = join(folder, 'log.swf')
    await writeFile(path, text)
    return await use(path)
  } finally {
    await rm(folder, { recursive: true })
  }
}
const line = (submit: number, run: number, user: number) =>
  `1 ${submit} -1 ${run} 1${' -1'.repeat(6)} ${user}${' -1'.repeat(6)}\n`

describe('readTrace', () => {
  it('reads a recorded log and keeps whom it acknowledges', async () => {
    const { jobs, header, skippedCount } = await readTrace(SLICE)
    expect(jobs).toHaveLength(400)
    expect(new Set(jobs.map(({ user }) => user)).size).toBe(24)
    expect(header).toContain('Acknowledge: Bill Nitzberg')
    expect(skippedCount).toBe(0)
  })

  it('stops at the limit', async () => {
    expect((await readTrace(SLICE, 7)).jobs).toHaveLength(7)
  })

  it('sorts by submission and reports what it skipped', async () => {
    const text = `${line(5, 1, 1)}oops\n${line(3, 2, 2)}${line(4, -1, 2)}`
    const { jobs, skipped, skippedCount } = await withFile(text, (path) => readTrace(path))
    expect(jobs.map(({ submitS }) => submitS)).toEqual([3, 5])
    expect(skipped.map((each) => each.line)).toEqual([2, 4])
    expect(skippedCount).toBe(2)
  })

  it('refuses a log in which no job can be replayed, and says why', async () => {
    await expect(withFile(line(1, -1, 4), (path) => readTrace(path))).rejects.toThrow(
      /holds no job that can be replayed; line 1: run time \(field 4\) is not known: -1/,
    )
  })
})

describe('compress', () => {
  it('divides all times by the factor and lets the first job be due at once', () => {
    expect(compress(trace([100, 60, 4], [130, 0, 5]), 10).jobs).toEqual([
      { tenant: 'user-4', dueMs: 0, durationMs: 6_000 },
      { tenant: 'user-5', dueMs: 3_000, durationMs: 0 },
    ])
  })
})

describe('busiestTenants', () => {
  it('takes the fewest tenants that enqueued half of the jobs, whatever those take', () => {
    const jobs = ['a', 'b', 'b', 'b', 'c', 'c', 'd', 'd'].map((tenant) => job(tenant, tenant === 'a' ? 1_000 : 1))
    expect([...busiestTenants(jobs)]).toEqual(['b', 'c'])
    expect([...busiestTenants([job('a', 99), job('b', 1), job('b', 1)])]).toEqual(['b'])
  })

  it('covers half of the jobs, and without any one of its tenants does not', () => {
    const jobs = fc.array(
      fc.constantFrom('a', 'b', 'c', 'd', 'e').map((tenant) => job(tenant, 1)),
      { minLength: 1 },
    )
    fc.assert(
      fc.property(jobs, (all) => {
        const noisy = busiestTenants(all)
        const count = (tenants: ReadonlySet<string>) => all.filter(({ tenant }) => tenants.has(tenant)).length
        expect(count(noisy) * 2).toBeGreaterThanOrEqual(all.length)
        for (const tenant of noisy) {
          expect(count(new Set([...noisy].filter((other) => other !== tenant))) * 2).toBeLessThan(all.length)
        }
      }),
    )
  })
})

describe('suggestCompression', () => {
  it('lets a log of months run for half a minute', () => {
    expect(suggestCompression(trace([0, 1, 1], [7_948_936, 1, 1]))).toBe(320_000)
  })

  it('gives a log of very many jobs the time that they need', () => {
    const jobs = Array.from({ length: 20_000 }, (_, index) => [index * 100, 1, 1] as const)
    expect(suggestCompression(trace(...jobs))).toBe(20_000)
  })

  it('never stretches a log that is short already', () => {
    expect(suggestCompression(trace([0, 1, 1], [3, 1, 1]))).toBe(1)
    expect(suggestCompression(trace([0, 1, 1]))).toBe(1)
  })
})

describe('suggestSlots', () => {
  const workload = (...jobs: readonly (readonly [dueMs: number, durationMs: number])[]) => ({
    jobs: jobs.map(([dueMs, durationMs]) => ({ tenant: 'a', dueMs, durationMs })),
    noisyTenants: new Set<string>(),
  })

  it('asks for as many slots as the workload keeps busy for four fifths of the time', () => {
    expect(suggestSlots(workload([0, 1_996], [1_000, 1_996]))).toBe(5)
  })

  it('counts what a job costs besides its run time', () => {
    expect(suggestSlots(workload(...Array.from({ length: 400 }, (_, index) => [index, 0] as const)))).toBe(5)
  })

  it('asks for at least one', () => {
    expect(suggestSlots(workload([0, 0], [1_000, 0]))).toBe(1)
  })
})
