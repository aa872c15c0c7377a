import { expect, test } from 'vitest'
import { newJob, newJobs } from '../../test/support/factory.js'
import { ENQUEUE_STATEMENT_BYTES_MAX, ENQUEUE_STATEMENT_MAX } from '../limits.js'
import { enqueueBatches } from './enqueue-values.js'

test('jobs are cut into statements by their number, in order and without a rest', () => {
  const jobs = newJobs(2 * ENQUEUE_STATEMENT_MAX + 1)
  const batches = enqueueBatches(jobs)
  expect(batches.map(({ length }) => length)).toEqual([ENQUEUE_STATEMENT_MAX, ENQUEUE_STATEMENT_MAX, 1])
  expect(batches.flat()).toEqual(jobs)
})

test('and by the size of their payloads, since no text of 10,000 large ones fits into memory (B53)', () => {
  const quarter = `"${'ж'.repeat(ENQUEUE_STATEMENT_BYTES_MAX / 8 - 1)}"`
  const batches = enqueueBatches([newJob({ payload: quarter }), ...newJobs(8, { payload: quarter })])
  expect(batches.map(({ length }) => length)).toEqual([4, 4, 1])
})

test('a job that is larger than a statement should be gets one of its own', () => {
  const large = newJob({ payload: `"${'x'.repeat(ENQUEUE_STATEMENT_BYTES_MAX)}"` })
  expect(enqueueBatches([newJob(), large, newJob()]).map(({ length }) => length)).toEqual([1, 1, 1])
})

test('nothing needs no statement', () => {
  expect(enqueueBatches([])).toEqual([])
})
