import { describe, expect, it } from 'vitest'
import { gapsOf } from './slot-latency.js'

const run = (index: number, startedMs: number, endedMs: number) => ({ index, attempt: 1, startedMs, endedMs })

describe('gapsOf', () => {
  it('goes from each end to the start that follows, whatever the order of the reports', () => {
    expect(gapsOf([run(1, 13, 20), run(0, 0, 10), run(2, 27, 30)])).toEqual([3, 7])
  })

  it('has no gap before the first job', () => {
    expect(gapsOf([run(0, 5, 6)])).toEqual([])
  })

  it('refuses two jobs at once, and names them', () => {
    expect(() => gapsOf([run(0, 0, 10), run(1, 9, 12)])).toThrow('jobs 0 and 1 ran at the same time')
  })
})
