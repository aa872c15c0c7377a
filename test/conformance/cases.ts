import type { Step } from './script.js'

/** A script with what is expected of it, by hand: who starts at each claim, in the order of their names. */
export interface Case {
  readonly name: string
  readonly steps: readonly Step[]
  /** One text a claim, such as `a a b`; with another kind than the first, `a/k2`. */
  readonly expected: readonly string[]
}

const enqueue = (tenant: string, jobs: number, more: Partial<Extract<Step, { do: 'enqueue' }>> = {}): Step => ({
  do: 'enqueue',
  tenant,
  jobs,
  ...more,
})
const claim = (count: number, kinds?: readonly string[]): Step => ({ do: 'claim', count, ...(kinds && { kinds }) })
const claims = (times: number, count: number): Step[] => Array.from({ length: times }, () => claim(count))
const settle: Step = { do: 'settle' }

/** A rate that gives no second token while a test runs. */
const SLOW = 0.000001

export const CASES: readonly Case[] = [
  {
    name: 'a backlog does not hold up whoever comes after it',
    steps: [enqueue('a', 100), ...claims(2, 1), enqueue('b', 2), ...claims(4, 1)],
    expected: ['a', 'a', 'a', 'b', 'a', 'b'],
  },
  {
    name: 'weights share, and act on what waits',
    steps: [
      enqueue('a', 50),
      enqueue('b', 50),
      { do: 'tenant', name: 'a', settings: { weight: 3 } },
      claim(4),
      claim(8),
      { do: 'tenant', name: 'a', settings: { weight: 1 } },
      claim(8),
    ],
    expected: ['a a a b', 'a a a a a a b b', 'a a a a b b b b'],
  },
  {
    name: 'groups share first, however many tenants they have',
    steps: [
      ...['a', 'b', 'c', 'd'].flatMap((tenant): Step[] => [
        { do: 'tenant', name: tenant, settings: { group: 'g' } },
        enqueue(tenant, 10),
      ]),
      enqueue('z', 40),
      claim(8),
      claim(8),
      { do: 'group', name: 'g', settings: { weight: 3 } },
      claim(8),
    ],
    expected: ['a b c d z z z z', 'a b c d z z z z', 'a a b b c d z z'],
  },
  {
    name: 'a tenant at its limit makes room for the others, and goes on when a slot is free',
    steps: [
      enqueue('a', 20),
      enqueue('b', 20),
      { do: 'tenant', name: 'a', settings: { concurrency: 2 } },
      claim(6),
      claim(2),
      { do: 'settle', jobs: 1 },
      claim(2),
      { do: 'tenant', name: 'a', settings: { concurrency: null } },
      claim(2),
    ],
    expected: ['a a b b b b', 'b b', 'a b', 'a b'],
  },
  {
    name: 'the room of a kind goes to those whose turn it is',
    steps: [
      enqueue('a', 1),
      enqueue('e', 1),
      claim(1),
      { do: 'kind', name: 'k1', settings: { concurrency: 3 } },
      enqueue('a', 2),
      claim(4),
    ],
    expected: ['a', 'a e'],
  },
  {
    name: 'a pause holds what waits and nothing else',
    steps: [
      enqueue('a', 3),
      enqueue('b', 3),
      { do: 'pause', tenant: 'a' },
      claim(2),
      { do: 'pause' },
      claim(2),
      { do: 'resume' },
      { do: 'resume', tenant: 'a' },
      claim(3),
    ],
    expected: ['b b', '', 'a a b'],
  },
  {
    name: 'tokens that are used up park their tenant',
    steps: [
      enqueue('a', 10),
      enqueue('b', 10),
      { do: 'tenant', name: 'a', settings: { rate: { perSecond: SLOW, burst: 3 } } },
      claim(4),
      claim(4),
      claim(4),
      { do: 'tenant', name: 'a', settings: { rate: null } },
      claim(2),
    ],
    expected: ['a a b b', 'a b b b', 'b b b b', 'a b'],
  },
  {
    name: 'jobs of a key run one after another, across tenants',
    steps: [
      enqueue('a', 2, { key: 'x' }),
      enqueue('b', 1, { key: 'x' }),
      enqueue('b', 1),
      claim(4),
      settle,
      claim(4),
      settle,
      claim(4),
    ],
    expected: ['a b', 'a', 'b'],
  },
  {
    name: 'priority orders the jobs of one tenant and buys nothing from another',
    steps: [
      enqueue('a', 2, { kind: 'k1' }),
      enqueue('a', 1, { kind: 'k2', priority: 9 }),
      enqueue('b', 3),
      ...[1, 1, 1, 1].map((count) => claim(count, ['k1', 'k2'])),
    ],
    expected: ['a/k2', 'b', 'a', 'b'],
  },
  {
    name: 'a tenant that comes back has no credit',
    steps: [enqueue('a', 1), enqueue('b', 30), claim(2), ...claims(10, 1), enqueue('a', 10), claim(8)],
    expected: ['a b', ...Array.from({ length: 10 }, () => 'b'), 'a a a a b b b b'],
  },
]
