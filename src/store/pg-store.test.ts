import { expect, test } from 'vitest'
import { PgStore, type Session } from './pg-store.js'

test('a round of maintenance ends, however much there is to forget', async () => {
  const calls = { prune_history: 0, prune_ring: 0 }
  const session: Session = {
    query: async ({ text }) => {
      const call = text.includes('prune_ring')
        ? 'prune_ring'
        : text.includes('prune_history')
          ? 'prune_history'
          : undefined
      if (!call) return []
      calls[call] += 1
      return call === 'prune_ring' ? [{ forgotten: '1000' }] : [{ dropped: 'job_history_settled_20260101' }]
    },
  }
  await new PgStore(session, 'tenantry').maintain()
  expect(calls).toEqual({ prune_history: 20, prune_ring: 20 })
})
