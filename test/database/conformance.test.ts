import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CASES } from '../conformance/cases.js'
import { differences } from '../conformance/compare.js'
import { DatabaseSubject, type Query } from '../conformance/database-subject.js'
import { startedBy } from '../conformance/expected.js'
import { ModelSubject } from '../conformance/model-subject.js'
import { randomScript, type ScriptOptions } from '../conformance/random-script.js'
import { play } from '../conformance/script.js'
import { useSharedDatabase } from '../support/claims.js'
import { uniqueName } from '../support/factory.js'

const database = useSharedDatabase()
const query: Query = (text, values) => database.query(text, values)

describe('the database', () => {
  test.each(CASES.map((each) => [each.name, each] as const))('%s', async (_, { steps, expected }) => {
    const rounds = await play(new DatabaseSubject(query, uniqueName('queue')), steps)
    expect(startedBy(rounds)).toEqual(expected)
    expect(differences(await play(new ModelSubject(), steps), rounds)).toEqual([])
  })
})

const SCRIPTS: readonly (readonly [string, ScriptOptions])[] = [
  ['nothing is set', {}],
  ['tenants have several kinds', { kinds: 2 }],
  ['weights and groups change', { settings: ['weight', 'group'] }],
  ['weights change and tenants have several kinds', { settings: ['weight'], kinds: 2 }],
  ['limits and pauses change', { settings: ['limit', 'pause'] }],
  ['tokens run out', { settings: ['rate'] }],
  ['jobs have keys', { settings: ['limit'], keys: true }],
]

describe('claims, passes and standings are those of the scheduler in memory', () => {
  test.each(SCRIPTS)('when %s', async (_, options) => {
    await fc.assert(
      fc.asyncProperty(randomScript(options), async (steps) => {
        const rounds = await play(new DatabaseSubject(query, uniqueName('queue')), steps)
        expect(differences(await play(new ModelSubject(), steps), rounds)).toEqual([])
      }),
      // The same scripts at each run, since a database is no place to look for the one in a thousand. The limit ends the shrinking.
      { numRuns: 25, seed: 20260, interruptAfterTimeLimit: 30_000 },
    )
  })
})
