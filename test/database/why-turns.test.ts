import { describe, expect, test } from 'vitest'
import type { Why } from '../../src/diagnosis/why.js'
import { defineJob } from '../../src/job/define-job.js'
import { useSharedDatabase } from '../support/claims.js'
import { type AskedQueue, useAskedQueues } from '../support/diagnosis.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()
const askedQueue = useAskedQueues(database)

/** How many jobs are claimed before this one, one at a time. */
async function claimsBefore(asked: AskedQueue, id: string): Promise<number> {
  for (let before = 0; ; before += 1) {
    const { ids } = await asked.claim(1, { kinds: ['send-invoice', 'resize-image'] })
    if (ids.length === 0) throw new Error(`expected job ${id} to be claimed`)
    if (ids[0] === id) return before
  }
}

/** Also of an answer whose rule is that nothing comes first. */
function jobsBefore(why: Why): number {
  return (why as unknown as { readonly jobsBefore: number }).jobsBefore
}

async function fairQueue(): Promise<AskedQueue> {
  const asked = await askedQueue({ worker: false })
  await asked.beat({ kinds: ['send-invoice', 'resize-image'] })
  return asked
}

describe('turns of a fair queue', () => {
  test('nothing comes first: the next claim takes it', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const why = await asked.why(id)
    expect(why).toMatchObject({
      rule: 'next',
      jobsBefore: 0,
      strategy: 'fair',
      busy: 0,
      slots: 100,
      workers: 1,
      remedies: [],
    })
    expect(why.explanation).toBe(
      `Nothing holds job ${id} back: it is the next of its queue, and the next claim takes it.`,
    )
  })

  test('its own earlier jobs and the turns of the others come first, as the claims then show', async () => {
    const asked = await fairQueue()
    await asked.queue.enqueueMany(50, { tenant: 'noisy' })
    await asked.queue.enqueueMany(50, { tenant: 'busy' })
    const mine = await asked.queue.enqueueMany(5, { tenant: 'quiet' })
    await asked.claim(10)
    const last = mine[4] ?? ''
    const why = await asked.why(last)
    expect(why).toMatchObject({ rule: 'turns', tenantsBefore: 2, countedToTheEnd: true })
    expect(await claimsBefore(asked, last)).toBe(jobsBefore(why))
  })

  test('before any claim has asked for the kind, all tenants count (weights too)', async () => {
    const asked = await fairQueue()
    await asked.setTenant('gold', { weight: 4 })
    await asked.queue.enqueueMany(60, { tenant: 'gold' })
    await asked.queue.enqueueMany(60, { tenant: 'free' })
    const mine = await asked.queue.enqueueMany(3, { tenant: 'quiet' })
    const why = await asked.why(mine[2] ?? '')
    expect(why).toMatchObject({ rule: 'turns', ownBefore: 2, tenantsBefore: 2 })
    expect(why.explanation).toMatch(
      /^At most \d+ jobs start before job \d+: 2 of the same tenant, and those of 2 other tenants\. 0 of 100 slots are busy\.$/,
    )
    expect(await claimsBefore(asked, mine[2] ?? '')).toBe(jobsBefore(why))
  })

  test('weights, several kinds and passes of the past', async () => {
    const asked = await fairQueue()
    await asked.setTenant('gold', { weight: 3 })
    for (const kind of ['send-invoice', 'resize-image']) {
      await asked.queue.enqueueMany(40, { tenant: 'gold', kind })
      await asked.queue.enqueueMany(40, { tenant: 'free', kind })
      await asked.queue.enqueueMany(4, { tenant: 'quiet', kind })
    }
    for (let claim = 0; claim < 9; claim += 1) await asked.claim(1, { kinds: ['send-invoice', 'resize-image'] })
    const [last] = await database.query<{ id: string }>(
      `select id::text from :schema.job where queue = $1 and tenant = 'quiet' and state = 'available' order by order_at desc, id desc limit 1`,
      [asked.name],
    )
    const why = await asked.why(last?.id ?? '')
    expect(await claimsBefore(asked, last?.id ?? '')).toBe(jobsBefore(why))
  })

  test('a tenant whose backlog ends gives up its turns: never more jobs come first than were named', async () => {
    const asked = await fairQueue()
    await asked.queue.enqueueMany(2, { tenant: 'short' })
    const mine = await asked.queue.enqueueMany(20, { tenant: 'quiet' })
    const why = await asked.why(mine[19] ?? '')
    expect(await claimsBefore(asked, mine[19] ?? '')).toBe(21)
    expect(jobsBefore(why)).toBeGreaterThanOrEqual(21)
  })

  test('a tenant that is parked does not come first', async () => {
    const asked = await fairQueue()
    await asked.queue.enqueueMany(10, { tenant: 'a-paused' })
    await asked.claim(1)
    await asked.pause({ tenant: 'a-paused' })
    await asked.enqueue({ tenant: 'b' })
    await asked.claim(2)
    const id = await asked.enqueue({ tenant: 'quiet' })
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('of a group: the tenants inside and the groups outside are told apart', async () => {
    const asked = await fairQueue()
    for (const tenant of ['m1', 'm2']) await asked.setTenant(tenant, { group: 'members' })
    await asked.queue.enqueueMany(30, { tenant: 'm1' })
    await asked.queue.enqueueMany(30, { tenant: 'alone' })
    const mine = await asked.queue.enqueueMany(3, { tenant: 'm2' })
    await asked.claim(4)
    const why = await asked.why(mine[2] ?? '')
    expect(why).toMatchObject({ rule: 'turns', group: 'members', tenantsBefore: 1, othersBefore: 1 })
    expect(why.explanation).toContain('other tenant of group "members", and those of 1 other group or tenant')
    const actual = await claimsBefore(asked, mine[2] ?? '')
    expect(Math.abs(actual - jobsBefore(why))).toBeLessThanOrEqual(1)
  })

  test('a higher priority goes before earlier jobs of the same tenant', async () => {
    const asked = await askedQueue()
    await asked.queue.enqueueMany(3)
    const urgent = await asked.enqueue({ priority: 10 })
    expect(await asked.why(urgent)).toMatchObject({ rule: 'next' })
  })

  test('a backlog is counted to 1,000 and no further', async () => {
    const asked = await askedQueue()
    await asked.queue.enqueueMany(1_200)
    const last = await asked.enqueue()
    const why = await asked.why(last)
    expect(why).toMatchObject({ rule: 'turns', ownBefore: 1_000, countedToTheEnd: false })
    expect(why.explanation).toMatch(/^At least 1,000 jobs start before/)
  })
})

describe('slots', () => {
  test('all slots of the workers that know the kind are busy', async () => {
    const asked = await askedQueue({ worker: false })
    await asked.beat({ slots: 2 })
    await asked.beat({ slots: 50, kinds: ['other-kind'], worker: `${asked.worker}-other` })
    await asked.queue.enqueueMany(4)
    const claim = await asked.claim(2)
    const why = await asked.whyTenant('acme')
    expect(why).toMatchObject({ rule: 'slots_busy', slots: 2, busy: 2, workers: 1, ownBefore: 0 })
    expect(why.explanation).toMatch(
      /^All 2 slots of the one worker that knows kind "send-invoice" are busy\. Job \d+ is the next one\.$/,
    )
    expect(why.remedies[0]?.sentence).toContain('more slots')
    await asked.queue.settle(claim)
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'next', busy: 0 })
  })

  test('a worker that runs is found, with its slots', async () => {
    const { tenantry } = await createTenantry()
    const greet = defineJob({ kind: 'greet' })
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const worker = tenantry.worker({ concurrency: 1 }).handle(greet, () => gate)
    const [first, second] = await tenantry.enqueueMany([
      { definition: greet, payload: {}, tenant: 'acme' },
      { definition: greet, payload: {}, tenant: 'acme' },
    ])
    await worker.start()
    const rules = async () => [
      (await tenantry.why({ job: first ?? '' })).rule,
      (await tenantry.why({ job: second ?? '' })).rule,
    ]
    await until(async () => (await rules()).join() === 'running,slots_busy', {
      until: 'the worker runs the first and the other waits',
    })
    open()
    await until(async () => (await rules()).join() === 'finished,finished', { until: 'both have run' })
    await worker.stop()
    const third = await tenantry.enqueue(greet, {}, { tenant: 'acme' })
    expect(await tenantry.why({ job: third })).toMatchObject({ rule: 'no_worker', workers: 0 })
  })

  test('asking while workers run finds a rule every time, and no job is lost by it', async () => {
    const { tenantry } = await createTenantry()
    const greet = defineJob({ kind: 'greet' })
    await tenantry.configureTenant('default', 't0', { concurrency: 1 })
    const jobs = Array.from({ length: 150 }, (_, number) => ({
      definition: greet,
      payload: {},
      tenant: `t${number % 5}`,
      ...(number % 3 === 0 && { key: `k${number % 7}` }),
    }))
    const ids = await tenantry.enqueueMany(jobs)
    const workers = [1, 2].map(() => tenantry.worker({ concurrency: 4 }).handle(greet, () => {}))
    await Promise.all(workers.map((worker) => worker.start()))
    const seen = new Set<string>()
    await until(
      async () => {
        const answers = await Promise.all(ids.map((id) => tenantry.why({ job: id })))
        for (const { rule } of answers) seen.add(rule)
        return answers.every(({ rule }) => rule === 'finished')
      },
      { until: 'all jobs have run' },
    )
    expect(seen).toContain('finished')
    expect(seen).not.toContain('unknown')
  })

  test('a limit comes before busy slots', async () => {
    const asked = await askedQueue({ worker: false })
    await asked.beat({ slots: 1 })
    await asked.setTenant('acme', { concurrency: 1 })
    await asked.queue.enqueueMany(2)
    await asked.claim(1)
    expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'tenant_limit' })
  })
})

describe('the other strategies', () => {
  test('fifo counts what is older, whoever it belongs to', async () => {
    const asked = await fairQueue()
    await asked.set({ strategy: 'fifo' })
    await asked.queue.enqueueMany(5, { tenant: 'noisy' })
    await asked.queue.enqueueMany(2, { tenant: 'quiet', kind: 'resize-image' })
    const id = await asked.enqueue({ tenant: 'quiet' })
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'turns', strategy: 'fifo', jobsBefore: 7, ownBefore: 2, tenantsBefore: 1 })
    expect(why.explanation).toMatch(/^Exactly 7 jobs start before/)
    expect(await claimsBefore(asked, id)).toBe(7)
  })

  test('round-robin counts rounds', async () => {
    const asked = await fairQueue()
    await asked.set({ strategy: 'round-robin' })
    for (const tenant of ['a', 'b', 'c']) await asked.queue.enqueueMany(20, { tenant })
    await asked.claim(4)
    const [third] = await database.query<{ id: string }>(
      `select id::text from :schema.job where queue = $1 and tenant = 'c' and state = 'available' order by id offset 2 limit 1`,
      [asked.name],
    )
    const why = await asked.why(third?.id ?? '')
    expect(why).toMatchObject({ rule: 'turns', strategy: 'round-robin', ownBefore: 2, tenantsBefore: 2 })
    expect(await claimsBefore(asked, third?.id ?? '')).toBe(jobsBefore(why))
  })

  test('a pause and a key act there as well', async () => {
    const asked = await fairQueue()
    await asked.set({ strategy: 'fifo' })
    await asked.enqueue({ key: 'k' })
    const id = await asked.enqueue({ key: 'k' })
    await asked.claim(2)
    expect(await asked.why(id)).toMatchObject({ rule: 'key_limit' })
    await asked.pause()
    expect(await asked.why(id)).toMatchObject({ rule: 'queue_paused' })
  })
})
