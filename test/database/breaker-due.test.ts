import { describe, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

describe.each(['fair', 'fifo', 'round-robin'])('with the strategy %s', (strategy) => {
  test('a job with a key that falls due is started by the very next claim', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy })
    await limited.queue.claim(1)
    await limited.queue.enqueue({ key: 'k', delayMs: 60_000 })
    expect((await limited.queue.claim(1)).jobs).toEqual([])
    await database.query(`update :schema.job set run_at = now() where queue = $1`, [limited.name])
    expect((await limited.queue.claim(1)).jobs).toHaveLength(1)
  })

  test('a rate of keys that is taken back leaves no timer that hides when the next job is due', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ strategy, key_rate: { limit: 1, per_ms: 60_000 } })
    await limited.queue.enqueueMany(2, { key: 'k' })
    await limited.setKey('k', { concurrency: 5 })
    expect((await limited.queue.claim(5)).jobs).toHaveLength(1)
    await limited.set({ key_rate: null })
    expect((await limited.queue.claim(5)).jobs).toHaveLength(1)
    await limited.age(3_600)
    await limited.queue.enqueue({ delayMs: 60_000 })
    expect((await limited.queue.claim(5)).nextDueMs).toBeGreaterThan(50_000)
    await database.query(`update :schema.walk set walk_at = now() where queue = $1 and kind = ''`, [limited.name])
    await limited.queue.claim(5)
    expect(await database.query('select from :schema.key_timer where queue = $1', [limited.name])).toEqual([])
  })
})
