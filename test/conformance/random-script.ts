import fc from 'fast-check'
import type { Step } from './script.js'

const TENANTS = ['a', 'b', 'c', 'd', 'e']
const KINDS = ['k1', 'k2']

export interface ScriptOptions {
  /** Of settings, these; none by default. */
  readonly settings?: readonly ('weight' | 'group' | 'limit' | 'rate' | 'pause')[]
  readonly kinds?: number
  readonly keys?: boolean
}

/** A rate that never refills while a test runs, so that the time on two clocks makes no difference. */
const SLOW = 0.000001

/** Schedules of arrivals, claims, settlings and changes of settings. */
export function randomScript({ settings = [], kinds = 1, keys = false }: ScriptOptions = {}): fc.Arbitrary<Step[]> {
  const tenant = fc.constantFrom(...TENANTS)
  const kind = fc.constantFrom(...KINDS.slice(0, kinds))
  const count = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }))
  const enqueue: fc.Arbitrary<Step> = fc.record(
    {
      do: fc.constant('enqueue' as const),
      tenant,
      kind,
      jobs: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 30 })),
      priority: fc.constantFrom(0, 0, 0, 5),
      ...(keys && { key: fc.constantFrom('x', 'y') }),
    },
    { requiredKeys: ['do', 'tenant', 'kind', 'jobs', 'priority'] },
  )
  const asked = fc.subarray(KINDS.slice(0, kinds), { minLength: 1 })
  const claim: fc.Arbitrary<Step> = fc.record({ do: fc.constant('claim' as const), count, kinds: asked })
  const settle: fc.Arbitrary<Step> = fc.record({
    do: fc.constant('settle' as const),
    jobs: fc.integer({ min: 1, max: 20 }),
    as: fc.constantFrom('complete', 'complete', 'complete', 'release'),
  })
  const changes = settings.map((each) => changeOf(each, { tenant, kind }))
  return fc.array(
    fc.oneof(
      { weight: 3, arbitrary: enqueue },
      { weight: 5, arbitrary: claim },
      { weight: 2, arbitrary: settle },
      ...changes.map((arbitrary) => ({ weight: 1, arbitrary })),
    ),
    { minLength: 5, maxLength: 60, size: 'max' },
  )
}

function changeOf(
  what: NonNullable<ScriptOptions['settings']>[number],
  { tenant, kind }: { readonly tenant: fc.Arbitrary<string>; readonly kind: fc.Arbitrary<string> },
): fc.Arbitrary<Step> {
  const ofTenant = (settings: fc.Arbitrary<Extract<Step, { do: 'tenant' }>['settings']>): fc.Arbitrary<Step> =>
    fc.record({ do: fc.constant('tenant' as const), name: tenant, settings })
  const limit = fc.constantFrom(null, 0, 1, 3)
  if (what === 'weight') return ofTenant(fc.record({ weight: fc.constantFrom(0.001, 0.5, 1, 3, 1_000) }))
  if (what === 'group') {
    const group = fc.record({
      do: fc.constant('group' as const),
      name: fc.constantFrom('g', 'h'),
      settings: fc.record({ weight: fc.constantFrom(0.5, 1, 4) }),
    })
    return fc.oneof(ofTenant(fc.record({ group: fc.constantFrom('g', 'h', null) })), group)
  }
  if (what === 'rate') {
    const rate = fc.oneof(
      fc.constant(null),
      fc.record({ perSecond: fc.constant(SLOW), burst: fc.integer({ min: 1, max: 30 }) }),
    )
    return fc.oneof(
      ofTenant(fc.record({ rate })),
      fc.record({ do: fc.constant('kind' as const), name: kind, settings: fc.record({ rate }) }),
    )
  }
  if (what === 'pause') {
    const scope = fc.oneof(fc.record({ tenant }), fc.record({ kind }), fc.constant({}))
    return fc
      .tuple(fc.constantFrom('pause' as const, 'resume' as const), scope)
      .map(([act, of]) => ({ do: act, ...of }))
  }
  return fc.oneof(
    ofTenant(fc.record({ concurrency: limit })),
    fc.record({ do: fc.constant('kind' as const), name: kind, settings: fc.record({ concurrency: limit }) }),
    fc.record({
      do: fc.constant('queue' as const),
      settings: fc.record({ concurrency: limit, tenantConcurrency: limit }, { requiredKeys: [] }),
    }),
    fc.record({
      do: fc.constant('key' as const),
      name: fc.constantFrom('x', 'y'),
      settings: fc.record({ concurrency: limit }),
    }),
  )
}
