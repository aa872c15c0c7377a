import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { explain } from './explain.js'
import { readWhy } from './read.js'
import { remediesOf } from './remedies.js'
import type { Reason } from './why.js'
import { duration, literal, shellWord } from './words.js'

const HOSTILE = [
  'plain',
  'two words',
  `it's`,
  `"quoted"`,
  `'; drop table job; --`,
  '$(rm -rf /)',
  '`id`',
  '--queue',
  'back\\slash',
  'new\nline',
  '\u{1F600} ü',
  `'"both"'`,
]

const JOB = {
  job: '42',
  queue: 'mail',
  kind: 'send-invoice',
  tenant: 'acme',
  key: 'k',
  priority: 0,
  attempt: 0,
  maxAttempts: 5,
  waitingMs: 10,
}

describe('names', () => {
  test.each(HOSTILE)('%j reaches a program through a shell as it is', (name) => {
    const words = execFileSync('sh', ['-c', `for word in ${shellWord(name)}; do printf '%s\\0' "$word"; done`], {
      encoding: 'utf8',
    })
    expect(words).toBe(`${name}\0`)
  })

  test.each(HOSTILE)('%j reaches a call as it is', (name) => {
    expect(new Function(`return ${literal(name)}`)()).toBe(name)
  })

  test.each(HOSTILE)('the calls of every remedy take %j for a name', async (name) => {
    const reasons: readonly Reason[] = [
      { ...JOB, rule: 'tenant_paused', tenant: name, since: new Date(0), sinceMs: 1 },
      { ...JOB, rule: 'tenant_limit', tenant: name, limit: 2, running: 2, oldest: [], own: true },
      { ...JOB, rule: 'kind_rate', kind: name, perSecond: 3, burst: 1, tokens: 0, before: 0, tokenMs: 1 },
      { ...JOB, rule: 'key_rate', key: name, perSecond: 3, burst: 1, tokens: 0, before: 0, tokenMs: 1, own: true },
    ]
    const calls: unknown[] = []
    const client = new Proxy(
      {},
      {
        get:
          (_, method) =>
          (...args: unknown[]) =>
            calls.push([method, ...args]),
      },
    )
    for (const { call } of reasons.flatMap(remediesOf)) {
      if (call !== undefined) await new Function('tenantry', `return (async () => { ${call} })()`)(client)
    }
    expect(calls).toEqual([
      ['resume', 'mail', { tenant: name }],
      ['configureTenant', 'mail', name, { concurrency: 3 }],
      ['configureKind', 'mail', name, { rate: { limit: 6 } }],
      ['configureKey', 'mail', name, { rate: { limit: 6 } }],
    ])
  })
})

test.each([
  [-5, '0 ms'],
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1.0 s'],
  [59_900, '59.9 s'],
  [60_000, '1 min'],
  [3_600_000, '1 h'],
  [172_800_000, '2 days'],
])('%d ms are said as %s', (ms, words) => {
  expect(duration(ms)).toBe(words)
})

test('a prepared transaction is named, and how to end it', () => {
  const reason: Reason = {
    ...JOB,
    rule: 'row_locked',
    holders: [{ prepared: `it's`, user: 'app', transactionMs: 120_000 }],
  }
  expect(explain(reason)).toBe(
    'The row of job 42 is locked by the prepared transaction "it\'s", 2 min old; claims step over it until that transaction ends.',
  )
  const [remedy] = remediesOf(reason)
  const [statement] = execFileSync('sh', ['-c', `set -- ${remedy?.command}; printf '%s' "$3"`], {
    encoding: 'utf8',
  }).split('\0')
  expect(statement).toBe(`rollback prepared 'it''s'`)
})

test('a session that the server does not show is named by its pid', () => {
  const reason: Reason = {
    ...JOB,
    rule: 'queue_locked',
    holders: [{ pid: 7, application: '', state: null, transactionMs: null }],
  }
  expect(explain(reason)).toContain('held by pid 7 (no application name, state not shown);')
})

test('the limit of all tenants is raised for all, and no further than it may be', () => {
  const facts = { ...JOB, rule: 'tenant_limit', limit: 1_000_000, running: 1_000_000, oldest: [], own: false } as const
  expect(remediesOf(facts)[1]).toMatchObject({
    command: 'npx tenantry queues set mail --tenant-concurrency 1000000',
    call: `await tenantry.configureQueue('mail', { tenantConcurrency: 1000000 })`,
  })
})

test('answers of the database are read with times as dates and names in camel case', () => {
  const detail = JSON.stringify({
    ...JOB,
    run_at: '2030-01-02T03:04:05.678901+00:00',
    due_ms: 5_000,
    ran_before: true,
    attempt: 2,
    error: { name: 'E', message: 'm', attempt: 2 },
  })
  const why = readWhy('scheduled', detail)
  expect(why).toMatchObject({
    rule: 'scheduled',
    runAt: new Date('2030-01-02T03:04:05.678Z'),
    dueMs: 5_000,
    ranBefore: true,
  })
  expect(why.explanation).toBe(
    'Job 42 waits for attempt 3 of 5, which is due in 5.0 s, at 2030-01-02T03:04:05.678Z. Attempt 2 failed with E: m.',
  )
})
