import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.js'
import { createTenantry } from '../support/tenantry.js'

const job = defineJob({ kind: 'k' })

test('the reason of a cancellation is stored in bounds, and without what text cannot carry (B38)', async () => {
  const { tenantry } = await createTenantry()
  const id = await tenantry.enqueue(job, null, { tenant: 'a' })
  expect(await tenantry.cancel(id, { reason: `no\0 longer ${'wanted '.repeat(10_000)}` })).toBe(true)
  const message = (await tenantry.job(id))?.errors[0]?.message ?? ''
  expect(message).toMatch(/^no\uFFFD longer wanted /)
  expect(message).toHaveLength(4_096)
})

test('a cancellation wants a reason', async () => {
  const { tenantry } = await createTenantry()
  await expect(tenantry.cancel('1', { reason: '' })).rejects.toThrow(
    'expected the reason of cancel to be a text for people, got ""',
  )
  await expect(tenantry.cancel('1', 'not wanted' as never)).rejects.toThrow(
    'expected the options of cancel to be an object, got "not wanted"',
  )
})
