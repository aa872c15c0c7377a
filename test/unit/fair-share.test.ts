import { expect, test } from 'vitest'
import { breaches, type Step } from '../support/fair-share.js'

/** The checker is checked: it must find what it is there to find. */
function claims(served: readonly Record<string, number>[], asked: number): Step[] {
  return served.map((jobs) => ({ type: 'claim', asked, served: new Map(Object.entries(jobs)) }))
}

const ARRIVALS: Step[] = ['a', 'b'].map((tenant) => ({ type: 'arrival', tenant, jobs: 100 }))

test('strict alternation is fair', () => {
  expect(breaches([...ARRIVALS, ...claims([{ a: 1 }, { b: 1 }, { a: 1 }, { b: 1 }], 1)])).toEqual([])
})

test('three turns running for one of two tenants are unfair', () => {
  const found = breaches([...ARRIVALS, ...claims([{ b: 1 }, { a: 1 }, { a: 1 }, { a: 1 }], 1)])
  expect(found).toEqual(['from claim 0 to 3, a and b differ by 3, the bound is 2'])
})

test('a weight of three earns three jobs in a row', () => {
  const served = claims([{ a: 1 }, { b: 1 }, { a: 1 }, { a: 1 }, { a: 1 }, { b: 1 }, { a: 1 }], 1)
  expect(breaches([...ARRIVALS, ...served], new Map([['a', 3]]))).toEqual([])
})

test('a tenant that waits for its first turn while another has two is found', () => {
  const found = breaches([...ARRIVALS, ...claims([{ a: 2 }], 2)])
  expect(found).toEqual(['a had 2 jobs until claim 0 while b waited for its first'])
})

test('a claim that leaves something behind is found', () => {
  expect(breaches([...ARRIVALS, ...claims([{ a: 1, b: 1 }], 3)])).toEqual([
    'claim 0 of 3 gave 2 jobs where 3 were expected',
  ])
})

test('what a tenant had while the other was away does not count', () => {
  const alone: Step[] = [{ type: 'arrival', tenant: 'a', jobs: 100 }, ...claims(Array(50).fill({ a: 1 }), 1)]
  const joined: Step[] = [{ type: 'arrival', tenant: 'b', jobs: 100 }, ...claims([{ b: 1 }, { a: 1 }, { b: 1 }], 1)]
  expect(breaches([...alone, ...joined])).toEqual([])
})
