import { expect, test } from 'vitest'
import { STRATEGIES } from '../../src/settings/settings.js'
import { useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

test.each(STRATEGIES)(
  '%s: nothing of a paused queue starts, and all of it after one resume (B19)',
  async (strategy) => {
    const queue = database.queue()
    await database.admin.configureQueue(queue.name, { strategy })
    await queue.enqueueMany(3, { tenant: 'a' })
    const running = await queue.claim(1)
    await database.admin.pause(queue.name, {})
    await database.admin.pause(queue.name, {})
    await queue.enqueueMany(2, { tenant: 'b' })
    expect((await queue.claim(10)).jobs).toEqual([])
    expect(await queue.settle(running)).toHaveLength(1)
    await database.admin.resume(queue.name, {})
    expect((await queue.claim(10)).jobs).toHaveLength(4)
  },
)

test('a pause holds for jobs that are retried, given back, reclaimed, due or enqueued meanwhile (B19)', async () => {
  const queue = database.queue()
  await queue.enqueueMany(8, { tenant: 'paused' })
  await queue.enqueueMany(2, { tenant: 'other' })
  const [retried, released, lost] = [await queue.claim(1), await queue.claim(1), await queue.claim(2)]
  await database.admin.pause(queue.name, { tenant: 'paused' })
  const failure = { name: 'Error', message: 'no' }
  await queue.settle(retried, { type: 'retry', delayMs: 0, failure })
  await queue.settle(released, { type: 'release' })
  await database.query(`update :schema.lease set expires_at = now() - interval '1 second' where id = $1`, [
    lost.leaseId,
  ])
  await queue.store.reclaim()
  await queue.enqueue({ tenant: 'paused', delayMs: 1 }, { tenant: 'paused', key: 'k' })
  await queue.enqueue({ tenant: 'other' })
  const tenants = (await queue.claimAll(5)).map(({ tenant }) => tenant)
  expect(new Set(tenants)).toEqual(new Set(['other']))
  await database.admin.resume(queue.name, { tenant: 'paused' })
  const rest = await until(
    async () => {
      await queue.claimAll(5)
      const waiting = await database.value<number>(
        `select count(*)::int from :schema.job where queue = $1 and tenant = 'paused' and state <> 'running'`,
        [queue.name],
      )
      return waiting === 0
    },
    { until: 'the reclaimed jobs have had their back-off' },
  )
  expect(rest).toBe(true)
  await expectSound(database)
})

test('a paused tenant costs the others nothing, and gets its share after it, not what it missed (B19)', async () => {
  const queue = database.queue()
  await queue.enqueueMany(100, { tenant: 'paused' })
  await queue.enqueueMany(100, { tenant: 'other' })
  await queue.claim(2)
  await database.admin.pause(queue.name, { tenant: 'paused' })
  for (let n = 0; n < 10; n++) expect((await queue.claim(4)).tenants).toEqual(Array.from({ length: 4 }, () => 'other'))
  await database.admin.resume(queue.name, { tenant: 'paused' })
  const tenants: string[] = []
  for (let n = 0; n < 20; n++) tenants.push(...(await queue.claim(1)).tenants)
  expect(Math.abs(tenants.filter((tenant) => tenant === 'paused').length - 10)).toBeLessThanOrEqual(1)
})

test('a paused kind does not start, and the other kinds of its tenants do', async () => {
  const queue = database.queue()
  await queue.enqueueMany(5, { tenant: 'a', kind: 'paused' })
  await queue.enqueueMany(5, { tenant: 'a', kind: 'other' })
  const kinds = ['paused', 'other']
  await database.admin.pause(queue.name, { kind: 'paused' })
  expect((await queue.claimAll(3, { kinds })).map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'other'))
  await database.admin.resume(queue.name, { kind: 'paused' })
  expect(await queue.claimAll(3, { kinds })).toHaveLength(5)
})

test('a queue, a tenant and a kind are paused and resumed separately', async () => {
  const queue = database.queue()
  await queue.enqueueMany(1, { tenant: 'a' })
  const scopes = [{}, { tenant: 'a' }, { kind: 'send-invoice' }]
  for (const scope of scopes) await database.admin.pause(queue.name, scope)
  for (const scope of scopes) {
    expect((await queue.claim(1)).jobs).toEqual([])
    await database.admin.resume(queue.name, scope)
  }
  expect((await queue.claim(1)).jobs).toHaveLength(1)
})
