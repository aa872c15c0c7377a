import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

/** Longer than any test waits, so that nothing is found by polling. */
const NO_POLL_MS = 120_000

const anything = defineJob({ kind: 'anything', retry: { baseMs: 10, jitter: 'none' } })

/** A worker whose handlers end when they are told to. */
async function gatedWorker(queue = 'default') {
  const { tenantry, query, quoted } = await createTenantry()
  const started: string[] = []
  const gates = new Map<string, () => void>()
  const worker = tenantry.worker({ queue, concurrency: 5, pollMinMs: NO_POLL_MS, pollMaxMs: NO_POLL_MS })
  worker.handle(anything, async (job) => {
    started.push(job.id)
    await new Promise<void>((resolve) => gates.set(job.id, resolve))
  })
  await worker.start()
  const isListening = (of: string) =>
    until(async () => (await query(`select from ${quoted}.waiter where queue = $1`, [of])).length > 0, {
      until: 'the worker waits for a notification',
    })
  const open = () => {
    for (const gate of gates.values()) gate()
  }
  return { tenantry, query, quoted, started, open, isListening }
}

test.each([
  ['a resumed queue', {}],
  ['a resumed tenant', { tenant: 'acme' }],
  ['a resumed kind', { kind: 'anything' }],
] as const)('%s starts without a poll (B19)', async (_, scope) => {
  const { tenantry, started, open, isListening } = await gatedWorker()
  await isListening('default')
  await tenantry.pause('default', scope)
  const id = await tenantry.enqueue(anything, 1, { tenant: 'acme' })
  await isListening('default')
  expect(started).toEqual([])
  await tenantry.resume('default', scope)
  await until(() => started.length > 0, { until: 'the job has started' })
  expect(started).toEqual([id])
  open()
})

test.each([
  ['a queue', 'configureQueue', ['default']],
  ['a tenant', 'configureTenant', ['default', 'acme']],
  ['a kind', 'configureKind', ['default', 'anything']],
] as const)('jobs start without a poll when the limit of %s is removed (B16)', async (_, method, names) => {
  const { tenantry, started, open, isListening } = await gatedWorker()
  const configure = tenantry[method].bind(tenantry) as (...given: readonly unknown[]) => Promise<unknown>
  await configure(...names, { concurrency: 0 })
  await isListening('default')
  await tenantry.enqueueMany([1, 2, 3].map((payload) => ({ definition: anything, payload, tenant: 'acme' })))
  await configure(...names, { concurrency: 2 })
  await until(() => started.length === 2, { until: 'two jobs have started' })
  await configure(...names, { concurrency: null })
  await until(() => started.length === 3, { until: 'the third job has started' })
  open()
})

test('draining lets what runs end, keeps the rest, and loses nothing', async () => {
  const { tenantry, query, quoted, started, open } = await gatedWorker()
  const jobs = Array.from({ length: 12 }, (_, payload) => ({
    definition: anything,
    payload,
    tenant: `t${payload % 3}`,
  }))
  await tenantry.enqueueMany(jobs)
  await until(() => started.length === 5, { until: 'all slots are in use' })
  const drained = await tenantry.drain('default', {
    onProgress: ({ running }) => {
      if (running === 5) open()
    },
  })
  expect(drained).toBe(true)
  expect(started).toHaveLength(5)
  expect(await query(`select state::text, count(*)::int from ${quoted}.job group by state`)).toEqual([
    { state: 'available', count: 7 },
  ])
})

test('moved jobs start at a worker of the other queue without a poll', async () => {
  const { tenantry, started, open, isListening } = await gatedWorker('target')
  await isListening('target')
  const ids = await tenantry.enqueueMany(
    [1, 2].map((payload) => ({ definition: anything, payload, tenant: 'acme', key: `k${payload}` })),
  )
  expect(await tenantry.moveJobs('default', 'target', { tenant: 'acme' })).toBe(2)
  await until(() => started.length === 2, { until: 'both jobs have started' })
  expect(started.toSorted()).toEqual(ids.toSorted())
  open()
})

test('the client refuses options that it does not know and values that it cannot use (B13)', async () => {
  const { tenantry } = await createTenantry()
  const refused: readonly (readonly [() => Promise<unknown>, string])[] = [
    [() => tenantry.pause('q', { tenat: 'a' } as never), 'did you mean tenant?'],
    [() => tenantry.pause('q', { tenant: 'a', kind: 'k' } as never), 'takes a tenant or a kind, got both'],
    [() => tenantry.resume('q', { tenant: '' }), 'expected tenant to be a string of 1 to 255 bytes'],
    [() => tenantry.drain('q', { tenant: 'a', kind: 'k' }), 'takes a tenant or a kind, got both'],
    [() => tenantry.drain('q', { until: 'done' as never }), "expected until to be one of 'idle', 'empty'"],
    [() => tenantry.drain('q', { timeoutMs: 0 }), 'expected timeoutMs to be an integer from 1 to 2147483647, got 0'],
    [() => tenantry.cancelAll('q', { kind: 7 as never }), 'expected kind to be a string of 1 to 255 bytes'],
    [() => tenantry.cancelAll('q', { reason: '' }), 'reason'],
    [() => tenantry.cancelAll('q', { signal: {} as never }), 'expected signal to be an AbortSignal'],
    [() => tenantry.purge('q', { history: 1 as never }), 'expected history to be true or false, got 1'],
    [() => tenantry.purge('', {}), 'expected queue to be a string of 1 to 255 bytes'],
    [() => tenantry.moveJobs('q', 'q'), 'expected toQueue to be another queue than that of the jobs, got "q"'],
    [() => tenantry.moveJobs('q', 7 as never), 'expected toQueue to be a string of 1 to 255 bytes'],
    [() => tenantry.moveJobs('q', 'r', { onProgress: 1 as never }), 'expected onProgress to be a function'],
  ]
  for (const [call, sentence] of refused) {
    await expect(call(), sentence).rejects.toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringContaining(sentence) as string,
    })
  }
})
