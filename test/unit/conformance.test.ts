import { describe, expect, test } from 'vitest'
import { CASES } from '../conformance/cases.js'
import { startedBy } from '../conformance/expected.js'
import { ModelSubject } from '../conformance/model-subject.js'
import { play } from '../conformance/script.js'

describe('the scheduler in memory', () => {
  test.each(CASES.map((each) => [each.name, each] as const))('%s', async (_, { steps, expected }) => {
    expect(startedBy(await play(new ModelSubject(), steps))).toEqual(expected)
  })
})
