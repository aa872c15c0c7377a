import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import {
  arrival,
  type Claimed,
  claiming,
  type Event,
  end,
  grouping,
  limiting,
  play,
  schedule,
  wait,
  weighing,
} from '../../test/support/schedules.js'
import type { Job } from './job.js'
import { type Ending, Scheduler } from './scheduler.js'

vi.setConfig({ testTimeout: 30_000 })

/** The limit ends the search for a smaller counterexample. */
const RUNS = { numRuns: 1_000, interruptAfterTimeLimit: 15_000 }

/** Counts and limits of everything that may have a limit, kept by hand beside the scheduler. */
class Ledger {
  readonly jobs = new Map<Job, 'waiting' | 'running'>()
  readonly limits = new Map<string, number>()
  readonly paused = new Set<string>()
  readonly #running = new Map<string, number>()
  #seen = 0

  note(event: Event, scheduler: Scheduler): void {
    for (const job of scheduler.state.jobs.values()) if (job.id > this.#seen) this.jobs.set(job, 'waiting')
    this.#seen = Math.max(this.#seen, ...[...this.jobs.keys()].map(({ id }) => id))
    for (const job of this.jobs.keys()) {
      if (job.standing === 'gone') this.jobs.delete(job)
      else this.jobs.set(job, job.standing === 'running' ? 'running' : 'waiting')
    }
    this.#running.clear()
    for (const [job, standing] of this.jobs) {
      if (standing !== 'running') continue
      for (const scope of this.scopesOf(job)) this.#running.set(scope, this.running(scope) + 1)
    }
    if (!('settings' in event)) return
    const scope = event.type === 'queue' ? 'queue' : `${event.type} ${event.name}`
    const settings = event.settings as {
      concurrency?: number | null
      tenantConcurrency?: number | null
      paused?: boolean
    }
    if (settings.concurrency !== undefined) this.#set(scope, settings.concurrency)
    if (settings.tenantConcurrency !== undefined) this.#set('tenants', settings.tenantConcurrency)
    if (settings.paused === true) this.paused.add(scope)
    if (settings.paused === false) this.paused.delete(scope)
  }

  /** The scopes that a job counts in. */
  scopesOf({ lane, key }: Job): string[] {
    return ['queue', `tenant ${lane.member.name}`, `kind ${lane.kind}`, ...(key === undefined ? [] : [`key ${key}`])]
  }

  running(scope: string): number {
    return this.#running.get(scope) ?? 0
  }

  limitOf(scope: string): number {
    if (this.paused.has(scope)) return 0
    const general = scope.startsWith('tenant ') ? this.limits.get('tenants') : scope.startsWith('key ') ? 1 : undefined
    return this.limits.get(scope) ?? general ?? Number.POSITIVE_INFINITY
  }

  #set(scope: string, limit: number | null): void {
    if (limit === null) this.limits.delete(scope)
    else this.limits.set(scope, limit)
  }
}

const limited = schedule(
  { weight: 2, arbitrary: arrival({ kinds: 2, keys: true }) },
  { weight: 4, arbitrary: claiming(2) },
  { weight: 3, arbitrary: end },
  { weight: 2, arbitrary: limiting },
  { weight: 1, arbitrary: wait },
  { weight: 1, arbitrary: weighing },
  { weight: 1, arbitrary: grouping },
)

/** Plays a schedule with a ledger that is told of everything; `check` is asked after each claim. */
function audit(events: readonly Event[], check: (ledger: Ledger, claimed: Claimed) => string[]): string[] {
  const ledger = new Ledger()
  const found: string[] = []
  play(events, (event, claimed, scheduler) => {
    ledger.note(event, scheduler)
    if (claimed) found.push(...check(ledger, claimed))
  })
  return found
}

test('no limit is ever exceeded by a claim, whatever ends, crashes and is set', () => {
  const exceeded = (ledger: Ledger, { started }: Claimed) =>
    [...new Set(started.flatMap((job) => ledger.scopesOf(job)))].flatMap((scope) => {
      const [running, limit] = [ledger.running(scope), ledger.limitOf(scope)]
      return running > limit ? [`${scope} runs ${running} of ${limit}`] : []
    })
  fc.assert(
    fc.property(limited, (planned) => {
      expect(audit(planned, exceeded)).toEqual([])
    }),
    RUNS,
  )
})

test('a claim that is not filled leaves only jobs for which a limit has no room, or that are not due', () => {
  const idle = (ledger: Ledger, { count, started, kinds, nowMs }: Claimed) => {
    if (started.length === count) return []
    const kept = keptKeys(ledger)
    return [...ledger.jobs].flatMap(([job, standing]) => {
      if (standing === 'running' || job.runAtMs > nowMs || !kinds.includes(job.lane.kind)) return []
      if (job.key !== undefined && kept.has(job.key)) return []
      const isBound = ledger.scopesOf(job).some((scope) => ledger.running(scope) >= ledger.limitOf(scope))
      return isBound ? [] : [`job ${job.id} of ${job.lane.member.name} could have started`]
    })
  }
  fc.assert(
    fc.property(limited, (planned) => {
      expect(audit(planned, idle)).toEqual([])
    }),
    RUNS,
  )
})

/** The keys that are used up by those that run or are let through, or kept by a job that comes again. */
function keptKeys(ledger: Ledger): Set<string> {
  const used = new Map<string, number>()
  for (const { key, standing, claimedAtMs } of ledger.jobs.keys()) {
    if (key === undefined) continue
    const isReturning = standing === 'scheduled' && claimedAtMs !== undefined
    const uses = isReturning ? Number.POSITIVE_INFINITY : Number(standing === 'available' || standing === 'running')
    used.set(key, (used.get(key) ?? 0) + uses)
  }
  return new Set([...used].flatMap(([key, uses]) => (uses >= ledger.limitOf(`key ${key}`) ? [key] : [])))
}

test('jobs of a key start strictly one after another, in order, through retries and crashes', () => {
  const endings: fc.Arbitrary<Ending> = fc.oneof(
    fc.constant({ type: 'complete' as const }),
    fc.constant({ type: 'release' as const }),
    fc.record({
      type: fc.constantFrom('retry' as const, 'snooze' as const, 'reclaim' as const),
      delayMs: fc.integer({ min: 1, max: 50 }),
    }),
  )
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), endings), { minLength: 5, maxLength: 60 }),
      (steps) => {
        const scheduler = new Scheduler()
        for (let job = 0; job < 12; job += 1) scheduler.enqueue({ tenant: `t${job % 3}`, kind: 'k1', key: 'x' }, 0)
        let done = 0
        for (const [index, [waits, ending]] of steps.entries()) {
          const nowMs = (index + 1) * 20 * (1 + waits)
          const started = scheduler.claim(['k1'], 5, nowMs)
          expect(started.length).toBeLessThanOrEqual(1)
          for (const job of started) {
            expect(job.id).toBe(done + 1)
            scheduler.settle(job, ending, nowMs)
            if (job.standing === 'gone') done += 1
          }
        }
      },
    ),
    RUNS,
  )
})

test('a rate is exceeded in no window of any length', () => {
  const shape = fc.record({
    perSecond: fc.double({ min: 0.5, max: 200, noNaN: true }),
    burst: fc.integer({ min: 1, max: 20 }),
    scope: fc.constantFrom('queue' as const, 'tenant' as const, 'kind' as const, 'key' as const),
    claims: fc.array(fc.tuple(fc.double({ min: 0, max: 400, noNaN: true }), fc.integer({ min: 1, max: 30 })), {
      minLength: 5,
      maxLength: 50,
    }),
  })
  fc.assert(
    fc.property(shape, ({ perSecond, burst, scope, claims }) => {
      const scheduler = new Scheduler()
      const rate = { perSecond, burst }
      if (scope === 'queue') scheduler.configureQueue({ rate })
      else if (scope === 'tenant') scheduler.configureTenant('a', { rate })
      else if (scope === 'kind') scheduler.configureKind('k1', { rate })
      else scheduler.configureKey('x', { rate, concurrency: 1_000 })
      for (let job = 0; job < 1_500; job += 1) {
        scheduler.enqueue({ tenant: 'a', kind: 'k1', ...(scope === 'key' && { key: 'x' }) }, 0)
      }
      let nowMs = 0
      const starts: number[] = []
      for (const [ms, count] of claims) {
        nowMs += ms
        for (const _ of scheduler.claim(['k1'], count, nowMs)) starts.push(nowMs)
      }
      for (const [last, at] of starts.entries()) {
        for (let first = 0; first <= last; first += 1) {
          const allowed = burst + (perSecond * (at - (starts[first] ?? 0))) / 1_000
          expect(last - first + 1).toBeLessThanOrEqual(allowed + 1e-3)
        }
      }
    }),
    { ...RUNS, numRuns: 300 },
  )
})

test('tokens are used as soon as they are there', () => {
  const scheduler = new Scheduler()
  scheduler.configureTenant('a', { rate: { perSecond: 10, burst: 2 } })
  for (let job = 0; job < 100; job += 1) scheduler.enqueue({ tenant: 'a', kind: 'k1' }, 0)
  const started = Array.from({ length: 101 }, (_, tenth) => scheduler.claim(['k1'], 5, tenth * 20).length)
  expect(started.reduce((sum, jobs) => sum + jobs, 0)).toBe(2 + 20)
})
