import { expect, test } from 'vitest'
import { learned } from './estimate.js'
import type { Job } from './job.js'
import { Scheduler } from './scheduler.js'

interface Workers {
  readonly slots: number
  /** How long a job runs that starts now. */
  readonly secondsOf: (job: Job, nowMs: number) => number
  readonly untilMs: number
}

/** Claims a job whenever a slot is free; answers with the worker-seconds that each tenant got. */
function workedSeconds(scheduler: Scheduler, { slots, secondsOf, untilMs }: Workers): Map<string, number> {
  const seconds = new Map<string, number>()
  const running: { readonly job: Job; readonly endMs: number }[] = []
  let nowMs = 0
  while (nowMs < untilMs) {
    for (const job of scheduler.claim(['k1', 'k2'], Math.max(1, slots - running.length), nowMs)) {
      const ran = secondsOf(job, nowMs)
      running.push({ job, endMs: nowMs + ran * 1_000 })
      seconds.set(job.lane.member.name, (seconds.get(job.lane.member.name) ?? 0) + ran)
    }
    running.sort((one, other) => one.endMs - other.endMs)
    const next = running.shift()
    if (!next) break
    nowMs = next.endMs
    scheduler.settle(next.job, { type: 'complete' }, nowMs)
  }
  return seconds
}

function charging(charge: 'jobs' | 'time'): Scheduler {
  const scheduler = new Scheduler()
  scheduler.configureQueue({ charge })
  for (let job = 0; job < 40_000; job += 1) {
    scheduler.enqueue({ tenant: 'short', kind: 'k1' }, 0)
    scheduler.enqueue({ tenant: 'long', kind: 'k1' }, 0)
    scheduler.enqueue({ tenant: 'changing', kind: 'k2' }, 0)
  }
  return scheduler
}

/** 1,000 seconds of work: the length of `changing` becomes ten times as large midway. */
const WORK: Workers = {
  slots: 4,
  untilMs: 250_000,
  secondsOf: ({ lane }, nowMs) => {
    if (lane.member.name === 'short') return 0.1
    return lane.member.name === 'long' || nowMs > 125_000 ? 1 : 0.1
  },
}

function spreadOf(seconds: ReadonlyMap<string, number>): number {
  const all = [...seconds.values()]
  return (Math.max(...all) - Math.min(...all)) / (all.reduce((sum, each) => sum + each, 0) / all.length)
}

test('tenants with jobs of 0.1 s, of 1 s and of a changing length get equal times within 5 % when time is charged', () => {
  const seconds = workedSeconds(charging('time'), WORK)
  expect(seconds.size).toBe(3)
  expect(spreadOf(seconds)).toBeLessThanOrEqual(0.05)
})

test('when jobs are charged, the tenant with long jobs gets several times the time', () => {
  expect(spreadOf(workedSeconds(charging('jobs'), WORK))).toBeGreaterThan(1)
})

test('runs that a crash ended are charged too', () => {
  const scheduler = charging('time')
  const seconds = new Map<string, number>()
  for (let claim = 0; claim < 2_000; claim += 1) {
    const nowMs = claim * 1_000
    for (const job of scheduler.claim(['k1', 'k2'], 1, nowMs)) {
      const ran = job.lane.member.name === 'long' ? 0.9 : 0.1
      seconds.set(job.lane.member.name, (seconds.get(job.lane.member.name) ?? 0) + ran)
      scheduler.settle(job, { type: 'reclaim', delayMs: 10 }, nowMs + ran * 1_000)
    }
  }
  expect(spreadOf(seconds)).toBeLessThanOrEqual(0.05)
})

test('an estimate learns nine tenths of a change in ten jobs, together or one by one', () => {
  expect(learned(1, { jobs: 10, seconds: 100 })).toBeCloseTo(10 - 9 * 0.8 ** 10)
  let estimate = 1
  for (let job = 0; job < 10; job += 1) estimate = learned(estimate, { jobs: 1, seconds: 10 })
  expect(estimate).toBeCloseTo(learned(1, { jobs: 10, seconds: 100 }))
  expect(learned(undefined, { jobs: 2, seconds: 5 })).toBe(2.5)
})
