import { expect, test } from 'vitest'
import { ERRORS_KEPT, LOCK_TIMEOUT_MS } from '../../src/limits.js'
import { BACKOFF_DEFAULTS } from '../../src/retry/policy.js'
import { WORKER_DEFAULTS } from '../../src/worker/options.js'
import { textOf } from './markdown.js'

const sql = (name: string) => textOf(`sql/migrations/${name}.sql`)
const fair = `${sql('0010_discovery')}\n${sql('0011_claim_fair')}`
const store = textOf('src/store/pg-store.ts')

/** What stands in the code, where, and the words in which the documents say it. */
const NUMBERS: readonly (readonly [string, string, RegExp, string, (found: string) => string])[] = [
  ['the quantum', fair, /_count \/ (\d+)\.0/, 'docs/fairness.md', (n) => `⌈n ÷ ${n}⌉`],
  ['the steps of the walk', fair, /walk_v1\([^;]*, (\d+), false\)/, 'docs/fairness.md', (n) => `${n} tenants a claim`],
  [
    'the steps of the walk',
    fair,
    /walk_v1\([^;]*, (\d+), false\)/,
    'docs/adr/0008-discovery.md',
    (n) => `⌈tenants with available jobs ÷ ${n}⌉`,
  ],
  ['the rest of the walk', fair, /'(\d+) milliseconds'/, 'docs/fairness.md', (n) => `${n} ms between two rounds`],
  ['the rest of the walk', fair, /'(\d+) milliseconds'/, 'docs/adr/0008-discovery.md', (n) => `at most ${n} ms`],
  ['the signals of a claim', fair, /order by oldest\.id\s+limit (\d+)/, 'docs/adr/0008-discovery.md', (n) => `÷ ${n}⌋`],
  [
    'the promotions of a claim',
    fair,
    /order by job\.run_at, job\.id\s+limit (\d+)/,
    'docs/adr/0006-scheduled.md',
    (n) => `at most ${n} jobs of each kind`,
  ],
  [
    'the lock timeout',
    sql('0014_claim'),
    /lock_timeout = '(\d+)s'/,
    'docs/operations.md',
    (n) => `at most ${n} s for any lock`,
  ],
  ['the days of settled jobs', store, /SETTLED_DAYS = (\d+)/, 'docs/operations.md', (n) => `kept for ${n} days`],
  [
    'the days of discarded jobs',
    store,
    /DISCARDED_DAYS = (\d+)/,
    'docs/operations.md',
    (n) => `discarded ones for ${n}`,
  ],
  [
    'the days ahead',
    textOf('src/limits.ts'),
    /HISTORY_DAYS_AHEAD = (\d+)/,
    'docs/operations.md',
    (n) => `${n} days ahead`,
  ],
  [
    'the attempts of a job',
    textOf('src/job/define-job.ts'),
    /maxAttempts: (\d+), priority/,
    'README.md',
    (n) => `(${n} by default)`,
  ],
  [
    'the attempts of a job',
    sql('0005_enqueue'),
    /'max_attempts'\)::\w+, (\d+)/,
    'docs/lifecycle.md',
    (n) => `\`maxAttempts\` is ${n}`,
  ],
]

test.each(NUMBERS)('%s is told as it is', (_, code, pattern, page, words) => {
  const found = pattern.exec(code)?.[1]
  expect(found, `expected the code to match ${pattern}`).toBeDefined()
  expect(textOf(page)).toContain(words(found ?? ''))
})

test('the bounds that stand in the SQL too are the same there', () => {
  const all = [sql('0014_claim'), sql('0015_lease'), sql('0016_settle')].join('\n')
  const waits = [...all.matchAll(/set lock_timeout = '(\d+)s'/g)].map(([, seconds]) => Number(seconds) * 1_000)
  expect(new Set(waits)).toEqual(new Set([LOCK_TIMEOUT_MS]))
  expect(sql('0015_lease')).toContain(`>= ${ERRORS_KEPT} then`)
})

test('the defaults of workers and of the back-off are told as they are', () => {
  const { concurrency, leaseMs, reclaimIntervalMs, shutdownTimeoutMs } = WORKER_DEFAULTS
  const { baseMs, maxMs } = BACKOFF_DEFAULTS
  expect(textOf('README.md')).toContain(`${baseMs / 1_000} s doubling up to ${maxMs / 3_600_000} h`)
  expect(textOf('README.md')).toContain(
    `at most ${reclaimIntervalMs / 1_000} s after their lease of ${leaseMs / 1_000} s has expired`,
  )
  expect(textOf('docs/operations.md')).toContain(`run at once in a process; ${concurrency} by default`)
  expect(textOf('docs/operations.md')).toContain(`\`shutdownTimeoutMs\` (${shutdownTimeoutMs / 1_000} s)`)
})
