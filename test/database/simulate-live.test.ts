import { expect, test } from 'vitest'
import { dryRun } from '../../src/simulate/dry-run.js'
import type { LiveState } from '../../src/simulate/live-state.js'
import { statements } from '../../src/store/sql.js'
import { DatabaseSubject, type Query } from '../conformance/database-subject.js'
import { play, type Step } from '../conformance/script.js'
import { useSharedDatabase } from '../support/claims.js'
import { uniqueName } from '../support/factory.js'

const database = useSharedDatabase()
const query: Query = (text, values) => database.query(text, values)

async function stateOf(queue: string): Promise<LiveState> {
  const { text } = statements(database.schema.schema).simulate_state
  const [row] = await database.schema.query<{ state: string }>(text, [queue, 1_000, 10_000])
  return JSON.parse(row?.state ?? '{}') as LiveState
}

const AS_IT_IS = { batch: 4, kinds: [], tenants: new Map(), groups: new Map() }

const BEFORE: readonly Step[] = [
  { do: 'tenant', name: 'a', settings: { weight: 3 } },
  { do: 'tenant', name: 'b', settings: { group: 'g' } },
  { do: 'tenant', name: 'c', settings: { group: 'g', concurrency: 2 } },
  { do: 'enqueue', tenant: 'a', jobs: 40 },
  { do: 'enqueue', tenant: 'b', jobs: 40 },
  { do: 'enqueue', tenant: 'c', jobs: 40 },
  { do: 'claim', count: 11 },
  { do: 'claim', count: 3 },
  { do: 'settle', jobs: 5 },
  { do: 'enqueue', tenant: 'd', jobs: 40 },
  { do: 'pause', tenant: 'e' },
  { do: 'enqueue', tenant: 'e', jobs: 5 },
]

test('the next dispatches of a live queue are those that its claims then bring', async () => {
  const queue = uniqueName('queue')
  const subject = new DatabaseSubject(query, queue)
  await play(subject, BEFORE)
  const expected = dryRun(await stateOf(queue), { ...AS_IT_IS, dispatches: 40 })
  const brought: string[][] = []
  for (let claim = 0; claim < 10; claim += 1) {
    const started = await subject.claim(4, ['k1'])
    await subject.settle(
      started.map(({ job }) => job),
      'complete',
    )
    brought.push(started.map(({ tenant }) => tenant).sort())
  }
  const inClaims = Array.from({ length: 10 }, (_, claim) =>
    expected
      .slice(claim * 4, claim * 4 + 4)
      .map(({ tenant }) => tenant)
      .sort(),
  )
  expect(brought).toEqual(inClaims)
})

test('a dry run changes nothing, and answers what other weights would do', async () => {
  const queue = uniqueName('queue')
  await play(new DatabaseSubject(query, queue), BEFORE)
  const before = await stateOf(queue)
  const share = (weight: number) => {
    const tenants = new Map([['d', { weight }]])
    return dryRun(before, { ...AS_IT_IS, tenants, dispatches: 60 }).filter(({ tenant }) => tenant === 'd').length
  }
  expect(share(10)).toBeGreaterThan(2 * share(1))
  const { now_ms: _, ...after } = await stateOf(queue)
  expect(before).toMatchObject(after)
})

test('a queue that nobody has used yet has no next dispatch', async () => {
  expect(dryRun(await stateOf(uniqueName('queue')), { ...AS_IT_IS, dispatches: 10 })).toEqual([])
})
