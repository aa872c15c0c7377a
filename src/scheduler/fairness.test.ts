import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { breaches, quantumOf, type Step } from '../../test/support/fair-share.js'
import {
  arrival,
  claiming,
  type Event,
  end,
  grouping,
  KINDS,
  play,
  schedule,
  TENANTS,
  wait,
  weighing,
  weight,
} from '../../test/support/schedules.js'
import { Scheduler } from './scheduler.js'

vi.setConfig({ testTimeout: 30_000 })

/** The limit ends the search for a smaller counterexample. */
const RUNS = { numRuns: 1_500, interruptAfterTimeLimit: 15_000 }

const weights = fc.record(Object.fromEntries(TENANTS.map((name) => [name, weight])))

function weighed(given: Readonly<Record<string, number>>): Event[] {
  return Object.entries(given).map(([name, value]) => ({ type: 'tenant', name, settings: { weight: value } }))
}

/** What the schedule looks like from outside: arrivals, and how many jobs each tenant got. */
function logOf(events: readonly Event[]): Step[] {
  const steps: Step[] = []
  play(events, (event, claimed) => {
    if (event.type === 'arrive') steps.push({ type: 'arrival', tenant: event.tenant, jobs: event.jobs })
    if (!claimed) return
    const served = new Map<string, number>()
    for (const { lane } of claimed.started) served.set(lane.member.name, (served.get(lane.member.name) ?? 0) + 1)
    steps.push({ type: 'claim', asked: claimed.count, served })
  })
  return steps
}

describe('tenants', () => {
  test('share by weight, start within one turn of each, and leave nothing undone, whatever arrives and is claimed', () => {
    for (const kinds of [1, 2]) {
      const events = schedule(
        { weight: 1, arbitrary: arrival({ kinds }) },
        { weight: 3, arbitrary: claiming(kinds) },
        { weight: 1, arbitrary: wait },
      )
      fc.assert(
        fc.property(events, weights, (planned, given) => {
          expect(breaches(logOf([...weighed(given), ...planned]), new Map(Object.entries(given)))).toEqual([])
        }),
        RUNS,
      )
    }
  })

  test('the check sees weights that are not heeded', () => {
    const events = schedule({ weight: 1, arbitrary: arrival() }, { weight: 3, arbitrary: claiming() })
    const property = fc.property(events, weights, (planned, given) => {
      return breaches(logOf(planned), new Map(Object.entries(given))).length === 0
    })
    expect(fc.check(property, { ...RUNS, endOnFailure: true }).failed).toBe(true)
  })

  test('get no credit for having been idle, however long', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 40 }), (served, count) => {
        const scheduler = new Scheduler()
        const arrive = (tenant: string, jobs: number) => {
          for (let each = 0; each < jobs; each += 1) scheduler.enqueue({ tenant, kind: 'k1' }, 0)
        }
        arrive('idle', 1)
        arrive('busy', served + 1_000)
        scheduler.claim(['k1'], 2, 1)
        for (let each = 0; each < served; each += 1) scheduler.claim(['k1'], 1, 2)
        arrive('idle', 1_000)
        const owners = Array.from({ length: 10 }, () => scheduler.claim(['k1'], count, 3))
          .flat()
          .map(({ lane }) => lane.member.name)
        const idle = owners.filter((name) => name === 'idle').length
        expect(Math.abs(idle - (owners.length - idle))).toBeLessThanOrEqual(2 * quantumOf(count))
      }),
      { numRuns: 200 },
    )
  })
})

describe('groups', () => {
  test('share first: a hundred tenants of one group get what one tenant gets', () => {
    const shape = fc.record({
      weight,
      other: weight,
      count: fc.integer({ min: 1, max: 60 }),
      claims: fc.integer({ min: 1, max: 80 }),
    })
    fc.assert(
      fc.property(shape, ({ weight, other, count, claims }) => {
        const scheduler = new Scheduler()
        scheduler.configureGroup('sybil', { weight })
        scheduler.configureTenant('honest', { weight: other })
        for (let id = 0; id < 100; id += 1) {
          scheduler.configureTenant(`id-${id}`, { group: 'sybil' })
          for (let job = 0; job < 50; job += 1) scheduler.enqueue({ tenant: `id-${id}`, kind: 'k1' }, 0)
        }
        for (let job = 0; job < 5_000; job += 1) scheduler.enqueue({ tenant: 'honest', kind: 'k1' }, 0)
        let [ofGroup, honest] = [0, 0]
        for (let claim = 0; claim < claims && Math.max(ofGroup, honest) + count <= 5_000; claim += 1) {
          for (const { lane } of scheduler.claim(['k1'], count, claim)) {
            if (lane.member.name === 'honest') honest += 1
            else ofGroup += 1
          }
        }
        const quantum = quantumOf(count)
        const bound = quantum / weight + quantum / other
        expect(Math.abs(ofGroup / weight - honest / other)).toBeLessThanOrEqual(bound * (1 + 1e-9))
      }),
      { numRuns: 60 },
    )
  })
})

describe('starvation', () => {
  test('nobody that is ready waits longer than the bound of docs/fairness.md', () => {
    const events = schedule(
      { weight: 2, arbitrary: arrival() },
      { weight: 6, arbitrary: claiming() },
      { weight: 1, arbitrary: weighing },
      { weight: 1, arbitrary: grouping },
      { weight: 1, arbitrary: end },
      { weight: 1, arbitrary: wait },
    )
    fc.assert(
      fc.property(events, (planned) => {
        expect(starved(fixedGroups(planned))).toEqual([])
      }),
      RUNS,
    )
  })

  test('the bound is hardly more than what may happen', () => {
    const arrive = (name: string, jobs: number): Event => ({ type: 'arrive', tenant: name, jobs, kind: 'k1' })
    const claims = Array.from({ length: 40 }, (): Event => ({ type: 'claim', count: 1, kinds: ['k1'] }))
    const planned = [...weighed({ b: 10 }), arrive('a', 5), arrive('b', 100), ...claims]
    expect(starved(planned)).toEqual([])
    expect(starved(planned, 0.85)).not.toEqual([])
  })
})

/** Groups of tenants stay as they are first set: whoever changes the group begins anew in another ring. */
function fixedGroups(events: readonly Event[]): Event[] {
  const isGroup = (event: Event) => event.type === 'tenant' && event.settings.group !== undefined
  return [...events.filter(isGroup), ...events.filter((event) => !isGroup(event))]
}

interface Party {
  group: string | undefined
  least: number
  most: number
}

/** Who waited longer than the bound says, from the log alone: passes are not looked at. */
function starved(events: readonly Event[], fraction = 1): string[] {
  const quantum = Math.max(1, ...events.flatMap((event) => (event.type === 'claim' ? [quantumOf(event.count)] : [])))
  const parties = partiesOf(events)
  const waits = new Map<string, Map<string, number>>()
  const waiting = new Map<string, number>()
  const found: string[] = []
  play(events, (event, claimed) => {
    if (event.type === 'arrive') {
      const before = waiting.get(event.tenant) ?? 0
      waiting.set(event.tenant, before + event.jobs)
      if (before === 0) waits.set(event.tenant, new Map())
    }
    // A job that is given back or tried again waits anew; it is not counted as having waited since it arrived.
    const served = new Map<string, number>()
    for (const { lane } of claimed?.started ?? []) served.set(lane.member.name, (served.get(lane.member.name) ?? 0) + 1)
    for (const [name, jobs] of served) waiting.set(name, Math.max(0, (waiting.get(name) ?? 0) - jobs))
    for (const [name, others] of waits) {
      if (served.has(name)) {
        if ((waiting.get(name) ?? 0) > 0) others.clear()
        else waits.delete(name)
        continue
      }
      for (const [other, jobs] of served) others.set(other, (others.get(other) ?? 0) + jobs)
      const waited = [...others.values()].reduce((sum, jobs) => sum + jobs, 0)
      const bound = boundOf(name, parties, quantum) * fraction
      if (waited > bound * (1 + 1e-9)) found.push(`${name} waited for ${waited} jobs of others, the bound is ${bound}`)
    }
  })
  return found
}

/** Everybody that ever has a job, and their groups, with the smallest and the largest weight that was ever set. */
function partiesOf(events: readonly Event[]): Map<string, Party> {
  const parties = new Map<string, Party>()
  const note = (name: string) => parties.set(name, { group: undefined, least: 1, most: 1 })
  const tenants = new Set(events.flatMap((event) => (event.type === 'arrive' ? [event.tenant] : [])))
  for (const name of tenants) note(name)
  for (const event of events) {
    const group = event.type === 'tenant' && tenants.has(event.name) ? event.settings.group : undefined
    if (group) note(`group ${group}`)
  }
  for (const event of events) {
    if (event.type !== 'tenant' && event.type !== 'group') continue
    const party = parties.get(event.type === 'group' ? `group ${event.name}` : event.name)
    const { weight: value, group } = event.settings as { weight?: number; group?: string | null }
    if (party && value !== undefined) {
      party.least = Math.min(party.least, value)
      party.most = Math.max(party.most, value)
    }
    if (party && group !== undefined) party.group = group ?? undefined
  }
  return parties
}

/** The formula: X within the group, and what the others at the top get meanwhile. */
function boundOf(name: string, parties: ReadonlyMap<string, Party>, quantum: number): number {
  const own = parties.get(name)
  if (!own) return 0
  const lag = quantum / own.least
  const isIn = (group: string | undefined) => (other: string) =>
    other !== name && !other.startsWith('group ') && parties.get(other)?.group === group
  const turnsOf = (others: readonly string[], distance: number) =>
    others.reduce((sum, other) => sum + distance * (parties.get(other)?.most ?? 0) + quantum, 0)
  const members = [...parties.keys()].filter(isIn(own.group))
  const groups = [...parties.keys()].filter((other) => other.startsWith('group '))
  if (own.group === undefined) return turnsOf([...members, ...groups], lag)
  const inside = turnsOf(members, lag)
  const group = `group ${own.group}`
  const weightOfGroup = parties.get(group)?.least ?? 1
  const outside = [...[...parties.keys()].filter(isIn(undefined)), ...groups.filter((other) => other !== group)]
  return inside + turnsOf(outside, (quantum + inside) / weightOfGroup)
}

test('kinds of one tenant are charged together', () => {
  const events = schedule({ weight: 1, arbitrary: arrival({ kinds: 2 }) }, { weight: 3, arbitrary: claiming(2) })
  fc.assert(
    fc.property(events, (planned) => {
      const many = planned.flatMap((event): Event[] =>
        event.type === 'arrive' && event.tenant === 'a' ? KINDS.map((kind) => ({ ...event, kind })) : [event],
      )
      expect(breaches(logOf(many))).toEqual([])
    }),
    RUNS,
  )
})
