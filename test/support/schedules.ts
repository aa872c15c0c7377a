import fc from 'fast-check'
import type { Job } from '../../src/scheduler/job.js'
import { type Ending, Scheduler } from '../../src/scheduler/scheduler.js'
import type { GroupSettings, LimitSettings, QueueSettings, TenantSettings } from '../../src/scheduler/settings.js'

/** What happens to a queue on virtual time. Running jobs are named by their place among those that run, the oldest first. */
export type Event =
  | {
      readonly type: 'arrive'
      readonly tenant: string
      readonly jobs: number
      readonly kind: string
      readonly key?: string
    }
  | { readonly type: 'claim'; readonly count: number; readonly kinds: readonly string[] }
  | { readonly type: 'end'; readonly place: number; readonly ending: Ending }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'queue'; readonly settings: QueueSettings }
  | { readonly type: 'tenant'; readonly name: string; readonly settings: TenantSettings }
  | { readonly type: 'group'; readonly name: string; readonly settings: GroupSettings }
  | { readonly type: 'kind'; readonly name: string; readonly settings: LimitSettings }
  | { readonly type: 'key'; readonly name: string; readonly settings: Omit<LimitSettings, 'paused'> }

export const TENANTS = ['a', 'b', 'c', 'd', 'e', 'f'] as const
export const KINDS = ['k1', 'k2'] as const
export const GROUPS = ['g', 'h'] as const
export const KEYS = ['x', 'y'] as const

export const tenant = fc.constantFrom(...TENANTS)

export const weight = fc.oneof(
  fc.constantFrom(0.001, 0.5, 1, 2, 1_000),
  fc.double({ min: 0.001, max: 1_000, noNaN: true }),
)

export const arrival = ({
  kinds = 1,
  keys = false,
}: {
  readonly kinds?: number
  readonly keys?: boolean
} = {}): fc.Arbitrary<Event> =>
  fc.record(
    {
      type: fc.constant('arrive' as const),
      tenant,
      jobs: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 40 })),
      kind: fc.constantFrom(...KINDS.slice(0, kinds)),
      ...(keys && { key: fc.constantFrom(...KEYS) }),
    },
    { requiredKeys: ['type', 'tenant', 'jobs', 'kind'] },
  )

export const claiming = (kinds = 1): fc.Arbitrary<Event> =>
  fc.record({
    type: fc.constant('claim' as const),
    count: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 45 })),
    kinds: fc.constant(KINDS.slice(0, kinds)),
  })

const ending: fc.Arbitrary<Ending> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ type: 'complete' as const }) },
  fc.constant({ type: 'release' as const }),
  fc.record({
    type: fc.constantFrom('retry' as const, 'snooze' as const, 'reclaim' as const),
    delayMs: fc.integer({ min: 1, max: 500 }),
  }),
)

/** Completions, crashes and everything else that ends a run. */
export const end: fc.Arbitrary<Event> = fc.record({
  type: fc.constant('end' as const),
  place: fc.integer({ min: 0, max: 20 }),
  ending,
})

export const wait: fc.Arbitrary<Event> = fc.record({
  type: fc.constant('wait' as const),
  ms: fc.integer({ min: 1, max: 400 }),
})

const concurrency = fc.constantFrom(null, 0, 1, 2, 5)

export const limiting: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ type: fc.constant('tenant' as const), name: tenant, settings: fc.record({ concurrency }) }),
  fc.record({ type: fc.constant('tenant' as const), name: tenant, settings: fc.record({ paused: fc.boolean() }) }),
  fc.record({
    type: fc.constant('kind' as const),
    name: fc.constantFrom(...KINDS),
    settings: fc.record({ concurrency }),
  }),
  fc.record({
    type: fc.constant('kind' as const),
    name: fc.constantFrom(...KINDS),
    settings: fc.record({ paused: fc.boolean() }),
  }),
  fc.record({
    type: fc.constant('key' as const),
    name: fc.constantFrom(...KEYS),
    settings: fc.record({ concurrency }),
  }),
  fc.record({
    type: fc.constant('queue' as const),
    settings: fc.record({ concurrency, tenantConcurrency: concurrency, paused: fc.boolean() }, { requiredKeys: [] }),
  }),
)

export const weighing: fc.Arbitrary<Event> = fc.record({
  type: fc.constant('tenant' as const),
  name: tenant,
  settings: fc.record({ weight }),
})

export const grouping: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    type: fc.constant('tenant' as const),
    name: tenant,
    settings: fc.record({ group: fc.constantFrom(...GROUPS, null) }),
  }),
  fc.record({ type: fc.constant('group' as const), name: fc.constantFrom(...GROUPS), settings: fc.record({ weight }) }),
)

export function schedule(...parts: readonly { readonly weight: number; readonly arbitrary: fc.Arbitrary<Event> }[]) {
  return fc.array(fc.oneof(...parts), { minLength: 10, maxLength: 80, size: 'max' })
}

/** What a claim did, as it is seen from outside. */
export interface Claimed {
  readonly count: number
  readonly kinds: readonly string[]
  readonly started: readonly Job[]
  readonly nowMs: number
}

/** Plays a schedule and tells `see` of every event, and of what a claim started. */
export function play(
  events: readonly Event[],
  see: (event: Event, claimed: Claimed | undefined, scheduler: Scheduler) => void,
): Scheduler {
  const scheduler = new Scheduler()
  const running: Job[] = []
  let nowMs = 0
  for (const event of events) {
    nowMs += 1
    if (event.type === 'claim') {
      const started = scheduler.claim(event.kinds, event.count, nowMs)
      running.push(...started)
      see(event, { ...event, started, nowMs }, scheduler)
      continue
    }
    if (event.type === 'wait') nowMs += event.ms
    else if (event.type === 'arrive') for (let each = 0; each < event.jobs; each += 1) scheduler.enqueue(event, nowMs)
    else if (event.type === 'end') endOne(scheduler, running, { event, nowMs })
    else configure(scheduler, event)
    see(event, undefined, scheduler)
  }
  return scheduler
}

function endOne(
  scheduler: Scheduler,
  running: Job[],
  { event, nowMs }: { readonly event: Extract<Event, { type: 'end' }>; readonly nowMs: number },
): void {
  const [job] = running.splice(event.place % Math.max(1, running.length), 1)
  if (job) scheduler.settle(job, event.ending, nowMs)
}

function configure(scheduler: Scheduler, event: Exclude<Event, { type: 'claim' | 'arrive' | 'end' | 'wait' }>): void {
  if (event.type === 'queue') scheduler.configureQueue(event.settings)
  else if (event.type === 'tenant') scheduler.configureTenant(event.name, event.settings)
  else if (event.type === 'group') scheduler.configureGroup(event.name, event.settings)
  else if (event.type === 'kind') scheduler.configureKind(event.name, event.settings)
  else scheduler.configureKey(event.name, event.settings)
}
