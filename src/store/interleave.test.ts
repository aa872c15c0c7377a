import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Job } from '../job/job.js'
import { interleave } from './interleave.js'

const job = (tenant: string, id: number): Job => ({
  id: String(id),
  queue: 'default',
  kind: 'noop',
  tenant,
  payload: null,
  attempt: 1,
  maxAttempts: 5,
  priority: 0,
  runAt: new Date(0),
  createdAt: new Date(0),
  errors: [],
})

it('starts one job of each tenant in turn and keeps each tenant in order', () => {
  const jobs = ['a', 'a', 'a', 'b', 'c', 'c'].map(job)
  expect(interleave(jobs).map((each) => each.tenant + each.id)).toEqual(['a0', 'b3', 'c4', 'a1', 'c5', 'a2'])
})

it('loses and doubles nothing, and lets no tenant run ahead of a waiting one by more than a job', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 }), (tenants) => {
      const jobs = tenants.map(job)
      const ordered = interleave(jobs)
      expect([...ordered].sort((x, y) => Number(x.id) - Number(y.id))).toEqual(jobs)
      const total = new Map<string, number>()
      for (const tenant of tenants) total.set(tenant, (total.get(tenant) ?? 0) + 1)
      const started = new Map<string, number>()
      for (const { tenant } of ordered) {
        started.set(tenant, (started.get(tenant) ?? 0) + 1)
        for (const [other, jobsOfOther] of total) {
          const done = started.get(other) ?? 0
          if (done < jobsOfOther) expect((started.get(tenant) ?? 0) - done).toBeLessThanOrEqual(1)
        }
      }
    }),
  )
})
