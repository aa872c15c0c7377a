import { describe, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { useAskedQueues } from '../support/diagnosis.js'

const database = useSharedDatabase()
const askedQueue = useAskedQueues(database)

describe('keys', () => {
  test('a job names the one that runs with its key, and how many come first', async () => {
    const asked = await askedQueue()
    const [first, second, third] = [
      await asked.enqueue({ key: 'k' }),
      await asked.enqueue({ key: 'k' }),
      await asked.enqueue({ key: 'k' }),
    ]
    expect((await asked.claim(3)).ids).toEqual([first])
    expect(await asked.why(second)).toMatchObject({
      rule: 'key_limit',
      key: 'k',
      limit: 1,
      own: false,
      before: 0,
      holders: [{ job: first, state: 'running', tenant: 'acme' }],
    })
    const why = await asked.why(third)
    expect(why.explanation).toBe(
      `Key "k" allows one job at a time. It is held by job ${first} (running). 1 job of the key comes first.`,
    )
    expect(why.remedies.map(({ call }) => call)).toEqual([
      undefined,
      `await tenantry.configureQueue('${asked.name}', { keyConcurrency: 2 })`,
    ])
  })

  test('a job that was admitted and waits holds the key, and is the one to ask about', async () => {
    const asked = await askedQueue()
    const first = await asked.enqueue({ key: 'k', tenant: 'held' })
    const second = await asked.enqueue({ key: 'k' })
    await database.query(`update :schema.job set state = 'available' where id = $1`, [first])
    await asked.pause({ tenant: 'held' })
    const why = await asked.why(second)
    expect(why).toMatchObject({ rule: 'key_limit', holders: [{ job: first, state: 'available' }] })
    expect(why.remedies[0]?.command).toBe(`npx tenantry why ${first}`)
    expect(await asked.why(first)).toMatchObject({ rule: 'tenant_paused' })
  })

  test('with a limit of one, a job that waits for its retry keeps its place, and is named', async () => {
    const asked = await askedQueue()
    const first = await asked.enqueue({ key: 'k' })
    const second = await asked.enqueue({ key: 'k' })
    const failure = { name: 'Error', message: 'no answer' }
    await asked.queue.settle(await asked.claim(), { type: 'retry', delayMs: 3_600_000, failure })
    const why = await asked.why(second)
    expect(why).toMatchObject({ rule: 'key_retry', retrying: first, error: { name: 'Error', message: 'no answer' } })
    expect(why.explanation).toMatch(
      new RegExp(`job ${first}, which comes first, waits for its next attempt: due in (60 min|1 h)`),
    )
    expect(why.remedies.map(({ command }) => command)).toContain(`npx tenantry jobs cancel ${first}`)
    await asked.setKey('k', { concurrency: 2 })
    expect(await asked.why(second)).toMatchObject({ rule: 'next' })
  })

  test('jobs ahead count against a larger limit', async () => {
    const asked = await askedQueue()
    await asked.setKey('k', { concurrency: 2 })
    const ids = [
      await asked.enqueue({ key: 'k' }),
      await asked.enqueue({ key: 'k' }),
      await asked.enqueue({ key: 'k' }),
    ]
    expect(await asked.why(ids[1] ?? '')).not.toMatchObject({ rule: 'key_limit' })
    const why = await asked.why(ids[2] ?? '')
    expect(why).toMatchObject({ rule: 'key_limit', limit: 2, own: true, held: 0, before: 2 })
    expect(why.remedies.at(-1)?.call).toBe(`await tenantry.configureKey('${asked.name}', 'k', { concurrency: 3 })`)
  })

  test('the rate of a key, with the time until its token', async () => {
    const asked = await askedQueue()
    await asked.setKey('k', { concurrency: 100, rate: { limit: 1, per_ms: 3_600_000, burst: 1 } })
    await asked.enqueue({ key: 'k' })
    const second = await asked.enqueue({ key: 'k' })
    const third = await asked.enqueue({ key: 'k' })
    expect((await asked.claim(10)).ids).toHaveLength(1)
    const why = await asked.why(second)
    expect(why).toMatchObject({ rule: 'key_rate', key: 'k', own: true, tokens: 0, before: 0 })
    const { tokenMs } = why as { tokenMs: number }
    expect(tokenMs).toBeGreaterThan(3_000_000)
    expect(tokenMs).toBeLessThanOrEqual(3_600_000)
    expect((await asked.why(third)) as { tokenMs?: number }).toMatchObject({ rule: 'key_rate', before: 1 })
    expect(((await asked.why(third)) as unknown as { tokenMs: number }).tokenMs).toBeGreaterThan(6_000_000)
    expect(why.remedies[1]?.call).toContain(`configureKey('${asked.name}', 'k', { rate: { limit: `)
  })

  test('where nobody has the key, the job that comes first is the one to ask about', async () => {
    const asked = await askedQueue()
    const first = await asked.enqueue({ key: 'k' })
    const second = await asked.enqueue({ key: 'k' })
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for update', [first])
    await asked.claim()
    const why = await asked.why(second)
    expect(why).toMatchObject({ rule: 'key_limit', held: 0, holders: [], before: 1, first })
    expect(why.remedies[0]?.command).toBe(`npx tenantry why ${first}`)
    expect(await asked.why(first)).toMatchObject({ rule: 'row_locked' })
    await session.run('rollback')
  })

  test('a key comes before the limit of the tenant, and a free key does not bind', async () => {
    const asked = await askedQueue()
    await asked.setTenant('acme', { concurrency: 1 })
    await asked.enqueue({ key: 'k' })
    const second = await asked.enqueue({ key: 'k' })
    const other = await asked.enqueue({ key: 'another' })
    await asked.claim()
    expect(await asked.why(second)).toMatchObject({ rule: 'key_limit' })
    expect(await asked.why(other)).toMatchObject({ rule: 'tenant_limit' })
  })

  test('a key whose limit is 0 lets nothing start', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue({ key: 'k' })
    await asked.setKey('k', { concurrency: 0 })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'key_limit', limit: 0, own: true })
    expect(why.explanation).toBe('The limit of key "k" is 0, which lets none of its jobs start.')
  })
})

describe('limits', () => {
  test('the wider limit is named, and the narrower when the wider one is lifted', async () => {
    const asked = await askedQueue()
    await asked.set({ concurrency: 1 })
    await asked.setKind('send-invoice', { concurrency: 1 })
    await asked.setTenant('acme', { concurrency: 1 })
    const running = await asked.enqueue()
    const id = await asked.enqueue()
    expect((await asked.claim(2)).ids).toEqual([running])
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'queue_limit', limit: 1, running: 1, oldest: [{ job: running, tenant: 'acme' }] })
    expect(why.explanation).toContain(
      `Queue "${asked.name}" is at its limit: 1 of at most 1 run. Job ${running} has been running longest`,
    )
    expect(why.remedies[1]?.call).toBe(`await tenantry.configureQueue('${asked.name}', { concurrency: 2 })`)
    await asked.set({ concurrency: null })
    expect(await asked.why(id)).toMatchObject({ rule: 'kind_limit' })
    await asked.setKind('send-invoice', { concurrency: null })
    expect(await asked.why(id)).toMatchObject({ rule: 'tenant_limit', own: true })
    await asked.setTenant('acme', { concurrency: 2 })
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('a limit that was lowered while jobs run names how many are too many', async () => {
    const asked = await askedQueue()
    await asked.queue.enqueueMany(4)
    await asked.claim(3)
    await asked.set({ tenant_concurrency: 1 })
    const why = await asked.whyTenant('acme')
    expect(why).toMatchObject({ rule: 'tenant_limit', own: false, limit: 1, running: 2 })
    expect(why.explanation).toContain('more than 1 of at most 1 run')
    expect(why.remedies[1]?.call).toBe(`await tenantry.configureQueue('${asked.name}', { tenantConcurrency: 3 })`)
  })

  test('other tenants and other kinds do not count', async () => {
    const asked = await askedQueue()
    await asked.setTenant('acme', { concurrency: 1 })
    await asked.enqueue({ tenant: 'other' })
    await asked.claim()
    const id = await asked.enqueue()
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('what the ring says of a parked tenant may be stale: the rule is found from what runs now', async () => {
    const asked = await askedQueue()
    await asked.setTenant('acme', { concurrency: 1 })
    await asked.enqueue()
    const id = await asked.enqueue()
    await asked.claim(2)
    await database.query(
      `update :schema.ring set ready = false, parked_at = now(), parked_until = 'infinity' where queue = $1`,
      [asked.name],
    )
    expect(await asked.why(id)).toMatchObject({ rule: 'tenant_limit' })
    await asked.setTenant('acme', { concurrency: null })
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('a ring that takes a tenant for ready does not hide its limit', async () => {
    const asked = await askedQueue()
    await asked.queue.enqueueMany(2)
    await asked.claim()
    await asked.setTenant('acme', { concurrency: 1 })
    const ready = await database.value<boolean>('select bool_or(ready) from :schema.ring where queue = $1', [
      asked.name,
    ])
    expect(ready).toBe(true)
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'tenant_limit' })
  })
})

describe('rates', () => {
  const hourly = { limit: 1, per_ms: 3_600_000, burst: 1 }

  test.each([
    ['queue_rate', 'queue', 'configureQueue', 'rate'],
    ['kind_rate', 'kind', 'configureKind', 'rate'],
    ['tenant_rate', 'tenant', 'configureTenant', 'rate'],
    ['tenant_rate', 'all tenants', 'configureQueue', 'tenantRate'],
  ])('%s of %s, with the time until the next token', async (rule, whose, method, setting) => {
    const asked = await askedQueue()
    if (whose === 'queue') await asked.set({ rate: hourly })
    if (whose === 'kind') await asked.setKind('send-invoice', { rate: hourly })
    if (whose === 'tenant') await asked.setTenant('acme', { rate: hourly })
    if (whose === 'all tenants') await asked.set({ tenant_rate: hourly })
    await asked.enqueue()
    const id = await asked.enqueue()
    expect(await asked.why(id)).toMatchObject({ rule: 'turns', ownBefore: 1 })
    expect((await asked.claim(2)).ids).toHaveLength(1)
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule, burst: 1, tokens: 0 })
    const { tokenMs } = why as unknown as { tokenMs: number }
    expect(tokenMs).toBeGreaterThan(3_000_000)
    expect(tokenMs).toBeLessThanOrEqual(3_600_000)
    expect(why.explanation).toMatch(
      /has used up its rate of .* a second \(burst 1\); the next token is due in (5\d|60) min|1 h/,
    )
    expect(why.remedies[1]?.call).toMatch(new RegExp(`tenantry\\.${method}\\(.*\\{ ${setting}: \\{ limit: `))
  })

  test('a limit comes before a rate', async () => {
    const asked = await askedQueue()
    await asked.setTenant('acme', { concurrency: 1, rate: hourly })
    await asked.enqueue()
    const id = await asked.enqueue()
    const claim = await asked.claim(2)
    expect(await asked.why(id)).toMatchObject({ rule: 'tenant_limit' })
    await asked.queue.settle(claim)
    expect(await asked.why(id)).toMatchObject({ rule: 'tenant_rate' })
  })
})
