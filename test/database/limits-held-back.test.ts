import { describe, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { LimitedQueue } from '../support/limits.js'

const database = useSharedDatabase()

interface Answer {
  readonly held_back: boolean
  readonly next_due_ms: number | null
}

async function ask(limited: LimitedQueue, count = 5): Promise<Answer> {
  const [answer] = await database.query<Answer>(
    `select held_back, next_due_ms from :schema.claim_v1($1, gen_random_uuid(), 'w', '{send-invoice}', $2, 60000, false)`,
    [limited.name, count],
  )
  if (!answer) throw new Error('expected an answer')
  return answer
}

describe('a claim that was not filled says', () => {
  test('that nothing is held back when nothing waits', async () => {
    const limited = new LimitedQueue(database)
    await limited.setTenant('acme', { concurrency: 3 })
    await limited.queue.enqueueMany(2)
    expect(await ask(limited)).toEqual({ held_back: false, next_due_ms: null })
  })

  test.each([
    ['tenant', (limited: LimitedQueue) => limited.setTenant('acme', { concurrency: 1 })],
    ['kind', (limited: LimitedQueue) => limited.setKind('send-invoice', { concurrency: 1 })],
    ['queue', (limited: LimitedQueue) => limited.set({ concurrency: 1 })],
  ] as const)('that a limit of a %s holds jobs back, and not when', async (_, limit) => {
    const limited = new LimitedQueue(database)
    await limit(limited)
    await limited.queue.enqueueMany(3)
    expect(await ask(limited)).toEqual({ held_back: true, next_due_ms: null })
  })

  test('the nearer of a token and a job that falls due', async () => {
    const limited = new LimitedQueue(database)
    await limited.setTenant('acme', { rate: { limit: 1, per_ms: 60_000, burst: 1 } })
    await limited.queue.enqueueMany(3)
    await limited.queue.enqueue({ delayMs: 600_000, tenant: 'other' })
    const token = await ask(limited)
    expect(token.held_back).toBe(true)
    expect(token.next_due_ms).toBeLessThanOrEqual(60_000)
    expect(token.next_due_ms).toBeGreaterThan(30_000)
    await limited.queue.enqueue({ delayMs: 20_000, tenant: 'other' })
    expect((await ask(limited)).next_due_ms).toBeLessThanOrEqual(20_000)
  })

  test('no time that has passed, over and over, whatever binds', async () => {
    const limited = new LimitedQueue(database)
    await limited.set({ tenant_rate: { limit: 1, per_ms: 3_600_000, burst: 5 }, tenant_concurrency: 1 })
    await limited.setKind('send-invoice', { rate: { limit: 1000, per_ms: 1_000, burst: 1000 }, concurrency: 2 })
    await limited.setKey('k', { rate: { limit: 10, per_ms: 1_000, burst: 10 } })
    for (const tenant of ['a', 'b', 'c']) await limited.queue.enqueueMany(5, { tenant })
    await limited.queue.enqueueMany(5, { tenant: 'd', key: 'k' })
    await ask(limited)
    const answers = [await ask(limited), await ask(limited), await ask(limited)]
    // Slots bind, of which a settling tells.
    for (const { next_due_ms } of answers)
      expect(next_due_ms === null || next_due_ms > 0, JSON.stringify(answers)).toBe(true)
  })
})
