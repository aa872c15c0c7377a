import { describe, expect, it } from 'vitest'
import { countLost, figuresOf, type HandlerStart } from './comparison.js'
import { noisyNeighbour } from './noisy-neighbour.js'
import { countByClass, type Workload } from './workload.js'

const workload: Workload = {
  jobs: ['loud', 'loud', 'calm', 'loud'].map((tenant) => ({ tenant, dueMs: 0, durationMs: 1 })),
  noisyTenants: new Set(['loud']),
}
const enqueuedMs = Float64Array.of(100, 105, 110, 110)
const record = (starts: readonly HandlerStart[], claimsMs: readonly number[] = []) => ({
  enqueuedMs,
  starts,
  claimsMs,
  settledMs: 300,
})
const start = (index: number, startedMs: number, endedMs = startedMs + 1): HandlerStart => ({
  index,
  attempt: 1,
  startedMs,
  endedMs,
})

describe('figuresOf', () => {
  it('orders starts by the shared clock, whatever order the processes reported them in', () => {
    const starts = [start(3, 140), start(0, 110), start(2, 120), start(1, 130)]
    const figures = figuresOf(workload, record(starts))
    expect(figures.lastQuietStart).toBe(2)
    expect(figures.quietWaitMs).toEqual({ mean: 10, p50: 10, p95: 10, p99: 10, max: 10 })
    expect(figures.noisyWaitMs).toEqual({ mean: 65 / 3, p50: 25, p95: 30, p99: 30, max: 30 })
  })

  it('counts a second start of a job as a double claim, and keeps the position of its first', () => {
    const starts = [start(0, 110), start(2, 120), start(1, 130), start(3, 140), start(2, 150)]
    const figures = figuresOf(workload, record(starts))
    expect(figures.doubleClaims).toBe(1)
    expect(figures.lastQuietStart).toBe(2)
    expect(figures.quietWaitMs?.max).toBe(10)
  })

  it('measures throughput from the first enqueue until the last job is settled', () => {
    const starts = [start(0, 110), start(1, 120), start(2, 130), start(3, 140)]
    expect(figuresOf(workload, record(starts)).jobsPerSecond).toBe(20)
  })

  it('gives the percentiles of the claims', () => {
    const figures = figuresOf(workload, record([], [3, 1, 2]))
    expect(figures.claimMs).toEqual({ p50: 2, p95: 3, p99: 3 })
  })

  it('has no figures, instead of zeros, for a class of tenants without jobs', () => {
    const onlyNoisy = { ...workload, noisyTenants: new Set(['loud', 'calm']) }
    const figures = figuresOf(onlyNoisy, record([start(0, 110)]))
    expect(figures).toMatchObject({ lastQuietStart: null, quietWaitMs: null, claimMs: null, doubleClaims: 0 })
  })
})

describe('countLost', () => {
  it('counts jobs that never started, and is not deceived by a double start', () => {
    expect(countLost(workload, record([start(0, 1), start(0, 2), start(1, 3)]))).toBe(2)
  })
})

describe('noisyNeighbour', () => {
  it('enqueues 1,000 jobs of tenant 1 before 5 of each of the tenants 2 to 11', () => {
    const { jobs } = noisyNeighbour()
    expect(jobs.slice(0, 1_000).every((job) => job.tenant === 'tenant-1')).toBe(true)
    expect(jobs.slice(1_000).map((job) => job.tenant)).toEqual(
      [2, 3, 4, 5, 6, 7, 8, 9, 10, 11].flatMap((tenant) => Array<string>(5).fill(`tenant-${tenant}`)),
    )
    expect(countByClass(noisyNeighbour())).toEqual({ noisy: 1_000, quiet: 50 })
  })
})
