import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { NaiveScheduler } from '../../test/support/naive-scheduler.js'
import { arrival, type Event, grouping, play, schedule, tenant, wait, weighing } from '../../test/support/schedules.js'

vi.setConfig({ testTimeout: 30_000 })

const CLAIM: Event = { type: 'claim', count: 1, kinds: ['k1'] }
const ONE: fc.Arbitrary<Event> = fc.constant(CLAIM)

/** Plays the same schedule to both; answers with the first claim in which they differ. */
function disagreement(events: readonly Event[]): string | undefined {
  const naive = new NaiveScheduler()
  const ids: { tenant: string }[] = []
  let found: string | undefined
  let claims = 0
  play(events, (event, claimed) => {
    if (event.type === 'arrive') {
      const known = naive.tenant(event.tenant)
      known.hasArrived = true
      for (let each = 0; each < event.jobs; each += 1) known.waiting.push(ids.push(event))
    } else if (event.type === 'tenant') {
      const { weight, group } = event.settings
      if (weight !== undefined) naive.tenant(event.name).weight = weight
      if (group !== undefined) naive.regroup(event.name, group ?? '')
    } else if (event.type === 'group') naive.group(event.name).weight = event.settings.weight ?? 1
    else if (claimed) {
      const expected = naive.claim()
      const got = claimed.started[0]?.id
      if (expected !== got) found ??= `claim ${claims}: expected job ${expected}, got ${got}`
      claims += 1
    }
  })
  return found
}

test('claims of one job go where the definition says, whatever arrives and is set', () => {
  const events = schedule(
    { weight: 2, arbitrary: arrival() },
    { weight: 8, arbitrary: ONE },
    { weight: 1, arbitrary: weighing },
    { weight: 1, arbitrary: grouping },
    { weight: 1, arbitrary: wait },
  )
  fc.assert(
    fc.property(events, (planned) => {
      // A change of the group acts at the next claim, so that two changes before it would be one.
      const settled = planned.flatMap((event): Event[] => (event.type === 'tenant' ? [event, CLAIM] : [event]))
      expect(disagreement(settled)).toBeUndefined()
    }),
    { numRuns: 2_000 },
  )
})

test('the check sees a scheduler that forgets the weights', () => {
  const weights = schedule({ weight: 1, arbitrary: arrival() }, { weight: 8, arbitrary: ONE })
  const property = fc.property(weights, tenant, (planned, name) => {
    const heavy: Event = { type: 'tenant', name, settings: { weight: 3 } }
    const naive = new NaiveScheduler()
    const got: (string | undefined)[] = []
    play([heavy, ...planned], (_, claimed) => claimed && got.push(claimed.started[0]?.lane.member.name))
    const expected: (string | undefined)[] = []
    const owners: string[] = []
    for (const event of planned) {
      if (event.type === 'arrive') {
        naive.tenant(event.tenant).hasArrived = true
        for (let each = 0; each < event.jobs; each += 1)
          naive.tenant(event.tenant).waiting.push(owners.push(event.tenant))
      } else expected.push(owners[(naive.claim() ?? 0) - 1])
    }
    return expected.join() === got.join()
  })
  expect(fc.check(property, { numRuns: 500 }).failed).toBe(true)
})
