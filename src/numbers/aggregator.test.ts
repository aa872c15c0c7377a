import { expect, test } from 'vitest'
import { Aggregator } from './aggregator.js'
import { bucketOf } from './histogram.js'
import { TENANTS_PER_PART } from './window.js'

const MINUTE = 60_000
/** Where the database's clock is when the local one shows 0: ten seconds into minute 100. */
const START = 100 * MINUTE + 10_000
const acme = { queue: 'mail', tenant: 'acme' }
const globex = { queue: 'mail', tenant: 'globex' }

function synchronized() {
  const aggregator = new Aggregator()
  aggregator.synchronize(START, 0)
  return aggregator
}

/** Everything that has to be written, told to be written. */
function write(aggregator: Aggregator, nowMs: number) {
  return aggregator.unwritten(nowMs).map(({ part, written }) => {
    written()
    return part
  })
}

test('what happens is added up by tenant, in the minute of the clock of the database', () => {
  const aggregator = synchronized()
  aggregator.started(acme, 40, 1_000)
  aggregator.started(acme, 60, 1_000)
  aggregator.started(globex, 5_000, 2_000)
  aggregator.settled(acme, 'completed', 3_000)
  aggregator.settled(acme, 'failed', 3_000)
  expect(write(aggregator, 4_000)).toEqual([
    {
      queue: 'mail',
      minute: 100,
      part: 0,
      tenants: ['acme', 'globex'],
      started: [2, 1],
      completed: [1, 0],
      failed: [1, 0],
      busySeconds: [0, 0],
      waits: { places: [1, 1, 2], buckets: [bucketOf(40), bucketOf(60), bucketOf(5_000)], jobs: [1, 1, 1] },
      runs: { places: [], buckets: [], jobs: [] },
    },
  ])
})

test('the time of a handler that still runs is counted as it passes, in the minutes in which it passes', () => {
  const aggregator = synchronized()
  const run = {}
  aggregator.began(run, acme, 30_000)
  expect(write(aggregator, 40_000)[0]?.busySeconds).toEqual([10])
  expect(write(aggregator, 49_999)[0]?.busySeconds).toEqual([19.999])
  aggregator.ended(run, 55_000)
  aggregator.ended(run, 56_000)
  const [next] = write(aggregator, 57_000)
  expect(next).toMatchObject({ minute: 101, busySeconds: [5.001], runs: { buckets: [bucketOf(25_000)], jobs: [1] } })
  expect(write(aggregator, 58_000)).toEqual([])
})

test('a part that was not written is sent again whole, with what was added, until it is', () => {
  const aggregator = synchronized()
  aggregator.started(acme, 1, 0)
  expect(aggregator.unwritten(1_000)).toHaveLength(1)
  aggregator.started(acme, 1, 2_000)
  const [failed] = aggregator.unwritten(3_000)
  expect(failed?.part.started).toEqual([2])
  // Counted while the statement was under way: then what was sent is not all there is.
  aggregator.started(acme, 1, 4_000)
  failed?.written()
  expect(write(aggregator, 5_000).map(({ started }) => started)).toEqual([[3]])
  expect(write(aggregator, 6_000)).toEqual([])
})

test('only the parts that changed are sent', () => {
  const aggregator = synchronized()
  for (let number = 0; number < TENANTS_PER_PART + 1; number += 1) {
    aggregator.started({ queue: 'mail', tenant: `t${number}` }, 1, 0)
  }
  expect(write(aggregator, 1_000).map(({ part, tenants }) => [part, tenants.length])).toEqual([
    [0, TENANTS_PER_PART],
    [1, 1],
  ])
  aggregator.started({ queue: 'mail', tenant: 't5' }, 1, 2_000)
  expect(write(aggregator, 3_000).map(({ part }) => part)).toEqual([0])
})

test('a window that is over is written to the end and then forgotten', () => {
  const aggregator = synchronized()
  aggregator.started(acme, 1, 49_000)
  aggregator.started(acme, 1, 51_000)
  expect(write(aggregator, 52_000).map(({ minute, started }) => [minute, started])).toEqual([
    [100, [1]],
    [101, [1]],
  ])
  aggregator.started(acme, 1, 53_000)
  expect(write(aggregator, 54_000).map(({ minute }) => minute)).toEqual([101])
})

test('what could not be written for an hour is given up', () => {
  const aggregator = synchronized()
  aggregator.started(acme, 1, 0)
  expect(aggregator.unwritten(60 * MINUTE)).toHaveLength(1)
  expect(aggregator.unwritten(62 * MINUTE)).toHaveLength(0)
})

test('what was counted before the clock of the database was known is put into the first minute that is', () => {
  const aggregator = new Aggregator()
  aggregator.started(acme, 1, -500)
  expect(aggregator.unwritten(-400)).toEqual([])
  aggregator.synchronize(START, 0)
  expect(write(aggregator, 0).map(({ minute, started }) => [minute, started])).toEqual([[100, [1]]])
})

test('a clock that is set back a little does not begin a window again that was forgotten', () => {
  const aggregator = synchronized()
  aggregator.started(acme, 1, 49_000)
  aggregator.started(acme, 1, 50_010)
  write(aggregator, 50_020)
  write(aggregator, 50_030)
  aggregator.synchronize(START + 50_030 - 100, 50_030)
  aggregator.started(acme, 1, 50_040)
  expect(write(aggregator, 50_050).map(({ minute, started }) => [minute, started])).toEqual([[101, [2]]])
})
