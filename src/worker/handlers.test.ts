import { expect, test } from 'vitest'
import { defineJob } from '../job/define-job.js'
import type { Job } from '../job/job.js'
import { discard } from '../settle/planned-exit.js'
import { batchResults, Handlers } from './handlers.js'

const mail = defineJob({ kind: 'mail' })
const report = defineJob({ kind: 'report' })

test('a kind has exactly one handler, of either sort', () => {
  const handlers = new Handlers()
  handlers.add(mail, () => undefined)
  expect(() => handlers.add(mail, () => undefined)).toThrow(/"mail" has a handler already/)
  expect(() => handlers.addBatch(mail, { size: 2 }, () => undefined)).toThrow(/"mail" has a handler already/)
})

test('what is no definition, no handler or no batch size is refused', () => {
  const handlers = new Handlers()
  expect(() => handlers.add('mail' as never, () => undefined)).toThrow(/definition made by defineJob/)
  expect(() => handlers.add(mail, undefined as never)).toThrow(/handler to be a function/)
  expect(() => handlers.addBatch(mail, { size: 0 }, () => undefined)).toThrow(/size/)
  expect(() => handlers.addBatch(mail, { size: 2, waitMs: -1 }, () => undefined)).toThrow(/waitMs/)
  expect(() => handlers.addBatch(mail, { size: 2, wait: 1 } as never, () => undefined)).toThrow(/unknown option "wait"/)
})

test('every handled kind is claimed unless some are chosen', () => {
  const handlers = new Handlers()
  handlers.add(mail, () => undefined)
  handlers.add(report, () => undefined)
  expect(handlers.claimable(undefined, 8)).toEqual(['mail', 'report'])
  expect(handlers.claimable(new Set(['report']), 8)).toEqual(['report'])
})

test('a worker without handlers, or with a chosen kind that has none, cannot start', () => {
  const handlers = new Handlers()
  expect(() => handlers.claimable(undefined, 8)).toThrow(/no handler/)
  handlers.add(mail, () => undefined)
  expect(() => handlers.claimable(new Set(['mail', 'report']), 8)).toThrow(/"report", which has no handler/)
})

test('a batch that could never be filled is refused', () => {
  const handlers = new Handlers()
  handlers.addBatch(mail, { size: 20 }, () => undefined)
  expect(() => handlers.claimable(undefined, 8)).toThrow(/size of "mail".*concurrency \(8\).*got 20/)
})

const jobs = [{ id: '1' }, { id: '2' }] as unknown as Job[]
const failure = new Error('no')

test.each([
  ['nothing', undefined, [undefined, undefined]],
  ['an array', [undefined, failure], [undefined, failure]],
  ['a map of some jobs', new Map([['2', failure]]), [undefined, failure]],
])('%s from a batch handler gives every job its result', (_, value, expected) => {
  const results = batchResults(jobs, value)
  expect(results.map((result) => (result.type === 'threw' ? result.error : 'value' in result && result.value))).toEqual(
    expected,
  )
})

test('a planned exit may stand among the results', () => {
  const exit = discard('twice')
  expect(batchResults(jobs, [exit, undefined])[0]).toEqual({ type: 'returned', value: exit })
})

test.each([
  ['an array of another length', [undefined]],
  ['a map with a job that is not in the batch', new Map([['3', undefined]])],
  ['a number', 42],
  ['a planned exit for all', discard('all')],
])('%s from a batch handler fails every job', (_, value) => {
  const results = batchResults(jobs, value)
  expect(results.map(({ type }) => type)).toEqual(['threw', 'threw'])
})
