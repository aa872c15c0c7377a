import { describe, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { useAskedQueues } from '../support/diagnosis.js'

const database = useSharedDatabase()
const askedQueue = useAskedQueues(database)

describe('jobs that need no explanation', () => {
  test('a job that never was is unknown', async () => {
    const asked = await askedQueue()
    const why = await asked.why('9223372036854775807')
    expect(why).toMatchObject({ rule: 'unknown', job: '9223372036854775807', remedies: [] })
    expect(why.explanation).toBe('There is no job 9223372036854775807: it was never committed, or its history is gone.')
  })

  test('a finished job says how and when it ended', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    await asked.queue.settle(await asked.claim(), {
      type: 'discard',
      failure: { name: 'TypeError', message: 'no such invoice' },
    })
    const why = await asked.why(id)
    expect(why).toMatchObject({
      rule: 'finished',
      state: 'discarded',
      attempt: 1,
      tenant: 'acme',
      finalizedAt: expect.any(Date),
    })
    expect(why.explanation).toContain('Attempt 1 failed with TypeError: no such invoice.')
    expect(why.remedies[0]?.command).toBe(`npx tenantry jobs show ${id}`)
  })

  test('a running job names its worker and until when its lease holds', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    await asked.claim()
    const why = await asked.why(id)
    expect(why).toMatchObject({
      rule: 'running',
      worker: asked.worker,
      lease: 'held',
      attempt: 1,
      leaseUntil: expect.any(Date),
      waitingMs: null,
    })
    expect(why.explanation).toMatch(new RegExp(`^Job ${id} runs: attempt 1 of 5, for .*, on worker "${asked.worker}"`))
  })

  test('a running job whose lease has run out, or is gone, says so', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const { leaseId } = await asked.claim()
    await database.query(`update :schema.lease set expires_at = '-infinity' where id = $1`, [leaseId])
    expect(await asked.why(id)).toMatchObject({ rule: 'running', lease: 'expired', leaseUntil: null })
    await database.query('delete from :schema.lease where id = $1', [leaseId])
    expect(await asked.why(id)).toMatchObject({ rule: 'running', lease: 'missing', worker: null })
  })

  test('a job for later says when it is due', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue({ delayMs: 3_600_000 })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'scheduled', ranBefore: false, error: null, runAt: expect.any(Date) })
    expect(why.explanation).toMatch(/is scheduled: it is due in (60 min|1 h), at /)
    expect(why.remedies.map(({ command }) => command)).toContain(`npx tenantry jobs cancel ${id}`)
  })

  test('a job that waits for its next attempt names the attempt and the error', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    await asked.queue.settle(await asked.claim(), {
      type: 'retry',
      delayMs: 3_600_000,
      failure: { name: 'Error', message: 'the mail server is down!' },
    })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'scheduled', ranBefore: true, attempt: 1, error: { name: 'Error', attempt: 1 } })
    expect(why.explanation).toMatch(
      /waits for attempt 2 of 5, .* Attempt 1 failed with Error: the mail server is down!$/,
    )
  })

  test('a job that snoozes does not blame an error', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    await asked.queue.settle(await asked.claim(), { type: 'snooze', delayMs: 3_600_000 })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'scheduled', ranBefore: true, attempt: 0 })
    expect(why.explanation).toMatch(new RegExp(`^Job ${id} snoozes: `))
  })

  test('a scheduled job that is due is as good as available', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue({ delayMs: 3_600_000 })
    await database.query(`update :schema.job set run_at = now() - interval '1 s', order_at = now() where id = $1`, [id])
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })
})

describe('pauses', () => {
  test('the wider pause is named, until it is the narrower one that binds', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const kind = 'send-invoice'
    await asked.pause({ tenant: 'acme' })
    await asked.pause({ kind })
    await asked.pause()
    const rules: string[] = []
    for (const scope of [{}, { kind }, { tenant: 'acme' }]) {
      const why = await asked.why(id)
      rules.push(why.rule)
      expect(why).toMatchObject({ since: expect.any(Date), sinceMs: expect.any(Number) })
      expect(why.remedies[0]?.call).toMatch(/^await tenantry\.resume\(/)
      await asked.resume(scope)
    }
    expect(rules).toEqual(['queue_paused', 'kind_paused', 'tenant_paused'])
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('a pause comes before the missing worker, a lock and a limit', async () => {
    const asked = await askedQueue({ worker: false })
    const id = await asked.enqueue()
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for update', [id])
    await asked.set({ concurrency: 1 })
    await asked.pause({ tenant: 'acme' })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'tenant_paused' })
    expect(why.remedies).toEqual([
      {
        sentence: `Resume tenant "acme" of queue "${asked.name}".`,
        command: expect.stringContaining('acme'),
        call: `await tenantry.resume('${asked.name}', { tenant: 'acme' })`,
      },
    ])
    await session.run('rollback')
  })

  test.each([
    ['queue_limit', 'queue'],
    ['kind_limit', 'kind'],
    ['tenant_limit', 'tenant'],
    ['tenant_limit', 'all tenants'],
  ])('a limit of 0 is a pause, before the missing worker: %s of %s', async (rule, whose) => {
    const asked = await askedQueue({ worker: false })
    const id = await asked.enqueue()
    if (whose === 'queue') await asked.set({ concurrency: 0 })
    if (whose === 'kind') await asked.setKind('send-invoice', { concurrency: 0 })
    if (whose === 'tenant') await asked.setTenant('acme', { concurrency: 0 })
    if (whose === 'all tenants') await asked.set({ tenant_concurrency: 0 })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule, limit: 0 })
    expect(why.explanation).toMatch(/^The limit of .* is 0, which lets nothing of it start\.$/)
    const setting = whose === 'all tenants' ? 'tenantConcurrency' : 'concurrency'
    expect(why.remedies[0]?.call).toContain(`{ ${setting}: 1 }`)
  })
})

describe('no worker', () => {
  test('when nobody works, and when nobody knows the kind, the kinds that are known', async () => {
    const asked = await askedQueue({ worker: false })
    const id = await asked.enqueue({ kind: 'send-invoise' })
    expect(await asked.why(id)).toMatchObject({ rule: 'no_worker', workers: 0, knownKinds: [], lastSeenAt: null })
    await asked.beat({ kinds: ['send-invoice', 'resize-image'] })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'no_worker', workers: 1, knownKinds: ['resize-image', 'send-invoice'] })
    expect(why.explanation).toContain(
      'does not know kind "send-invoise"; kinds that are known: "resize-image", "send-invoice".',
    )
    expect(why.remedies[0]?.call).toContain(`.handle(defineJob({ kind: 'send-invoise' }), handler)`)
  })

  test('a worker that has not been seen for half a minute does not count', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    await database.query(`update :schema.worker set seen_at = now() - interval '40 s' where worker_id = $1`, [
      asked.worker,
    ])
    expect(await asked.why(id)).toMatchObject({ rule: 'no_worker', workers: 0, lastSeenAt: expect.any(Date) })
  })

  test('a worker of another queue does not count', async () => {
    const asked = await askedQueue({ worker: false })
    const other = await askedQueue()
    const id = await asked.enqueue()
    expect(await asked.why(id)).toMatchObject({ rule: 'no_worker', workers: 0 })
    expect(await other.why(await other.enqueue())).toMatchObject({ rule: 'next' })
  })
})

describe('tenants', () => {
  test('a tenant without jobs that wait has none, and says what runs', async () => {
    const asked = await askedQueue()
    expect(await asked.whyTenant('nobody')).toMatchObject({ rule: 'no_jobs', running: 0, kind: null })
    const id = await asked.enqueue()
    await asked.claim()
    const why = await asked.whyTenant('acme')
    expect(why).toMatchObject({ rule: 'no_jobs', running: 1, oldest: [{ job: id }] })
    expect(why.explanation).toContain(`No job of tenant "acme" waits in queue "${asked.name}"; 1 job of it runs.`)
  })

  test('the answer is about its first job, of all kinds or of the one that was named', async () => {
    const asked = await askedQueue()
    const first = await asked.enqueue({ kind: 'unknown-kind' })
    const second = await asked.enqueue()
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'no_worker', job: first })
    expect(await asked.whyTenant('acme', 'send-invoice')).toMatchObject({ rule: 'next', job: second })
    expect(await asked.whyTenant('acme', 'third-kind')).toMatchObject({ rule: 'no_jobs', kind: 'third-kind' })
  })

  test('only jobs for later: the first of them', async () => {
    const asked = await askedQueue()
    await asked.enqueue({ delayMs: 7_200_000 })
    const sooner = await asked.enqueue({ delayMs: 3_600_000 })
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'scheduled', job: sooner })
  })

  test('a first job that is locked does not speak for the tenant, unless all are', async () => {
    const asked = await askedQueue()
    const first = await asked.enqueue()
    const second = await asked.enqueue()
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for update', [first])
    expect(await asked.why(first)).toMatchObject({ rule: 'row_locked' })
    expect((await asked.whyTenant('acme')).rule).not.toBe('row_locked')
    await session.run('select from :schema.job where id = $1 for update', [second])
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'row_locked', job: first })
    await session.run('rollback')
  })

  test('jobs that wait for a key are found, after those that do not', async () => {
    const asked = await askedQueue()
    await asked.enqueue({ key: 'k', tenant: 'other' })
    await asked.claim()
    const keyed = await asked.enqueue({ key: 'k' })
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'key_limit', job: keyed })
    const free = await asked.enqueue()
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'next', job: free })
  })
})

test('what cannot be asked is refused with a sentence', async () => {
  const asked = await askedQueue()
  const refused = [
    [{ job: 'x' }, 'expected the id of a job to be'],
    [{ job: '1', tenant: 'acme' }, 'why takes a job, or a queue and a tenant, got both'],
    [{ tenant: 'acme' }, 'expected queue to be'],
    [{ queue: 'default', tenant: '' }, 'expected tenant to be'],
    [{ id: '1' }, 'unknown option "id" of why'],
  ] as const
  for (const [target, message] of refused) {
    await expect(asked.ask(target as never)).rejects.toThrow(message)
  }
})
