import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compress, heaviestTenants, readTrace, suggestCompression, suggestSlots, type Trace } from './trace.js'

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

describe('heaviestTenants', () => {
  it('takes the fewest tenants that make up half of the work', () => {
    expect([...heaviestTenants([job('a', 10), job('b', 30), job('c', 25), job('d', 20)])]).toEqual(['b', 'c'])
    expect([...heaviestTenants([job('a', 1), job('b', 99)])]).toEqual(['b'])
  })

  it('counts jobs when there are no run times', () => {
    expect([...heaviestTenants([job('a', 0), job('b', 0), job('b', 0)])]).toEqual(['b'])
  })

  it('covers half of the work, and without its lightest tenant does not', () => {
    const jobs = fc.array(
      fc.record({ tenant: fc.constantFrom('a', 'b', 'c', 'd', 'e'), dueMs: fc.constant(0), durationMs: fc.nat(1_000) }),
      { minLength: 1, maxLength: 50 },
    )
    fc.assert(
      fc.property(jobs, (all) => {
        fc.pre(all.some((each) => each.durationMs > 0))
        const noisy = heaviestTenants(all)
        const work = (tenants: ReadonlySet<string>) =>
          all.filter((each) => tenants.has(each.tenant)).reduce((sum, each) => sum + each.durationMs, 0)
        const total = work(new Set(['a', 'b', 'c', 'd', 'e']))
        expect(work(noisy) * 2).toBeGreaterThanOrEqual(total)
        for (const tenant of noisy) {
          expect(work(new Set([...noisy].filter((other) => other !== tenant))) * 2).toBeLessThan(total)
        }
      }),
    )
  })
})

describe('suggestCompression', () => {
  it('lets a log of months run for half a minute', () => {
    expect(suggestCompression(trace([0, 1, 1], [7_948_936, 1, 1]))).toBe(320_000)
  })

  it('never stretches a log that is short already', () => {
    expect(suggestCompression(trace([0, 1, 1], [3, 1, 1]))).toBe(1)
    expect(suggestCompression(trace([0, 1, 1]))).toBe(1)
  })
})

describe('suggestSlots', () => {
  it('asks for as many slots as the work keeps busy for four fifths of the time', () => {
    expect(suggestSlots(trace([0, 400, 1], [100, 400, 2]))).toBe(10)
    expect(suggestSlots(trace([0, 1, 1], [1_000, 1, 2]))).toBe(1)
  })
})
