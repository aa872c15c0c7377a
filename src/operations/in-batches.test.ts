import { describe, expect, test } from 'vitest'
import type { Batch } from '../store/admin-store.js'
import { inBatches } from './in-batches.js'

/** Batches that are told one after another; an error is thrown in its turn. */
function script(...steps: readonly (Batch | Error)[]) {
  const cursors: (string | undefined)[] = []
  const run = async (cursor: string | undefined): Promise<Batch> => {
    const step = steps[cursors.length]
    cursors.push(cursor)
    if (!step || step instanceof Error) throw step ?? new Error('no step is left')
    return step
  }
  return { cursors, run }
}

const failure = (code: string) => Object.assign(new Error(`SQLSTATE ${code}`), { code })

describe('an operation in batches', () => {
  test('goes on from where the last batch stopped until one says that nothing is left', async () => {
    const { cursors, run } = script({ changed: 5, cursor: 'a' }, { changed: 0, cursor: 'b' }, { changed: 2 })
    const told: number[] = []
    expect(await inBatches(run, { onProgress: (jobs) => told.push(jobs) })).toBe(7)
    expect(cursors).toEqual([undefined, 'a', 'b'])
    expect(told).toEqual([5, 5, 7])
  })

  test('sends a batch again when somebody was in the way, and nothing else again', async () => {
    const { cursors, run } = script({ changed: 1, cursor: 'a' }, failure('55P03'), { changed: 1 })
    expect(await inBatches(run, {})).toBe(2)
    expect(cursors).toEqual([undefined, 'a', 'a'])
    await expect(inBatches(script(failure('22023')).run, {})).rejects.toThrow('22023')
  })

  test('does not begin when it was aborted before', async () => {
    const { cursors, run } = script({ changed: 1 })
    await expect(inBatches(run, { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow('never')
    expect(cursors).toEqual([])
  })
})
