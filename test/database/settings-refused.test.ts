import { expect, test } from 'vitest'
import type { SettingsChange } from '../../src/settings/settings.js'
import { Tenantry } from '../../src/tenantry.js'
import { useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf } from '../support/expect.js'
import { uniqueName } from '../support/factory.js'

const database = useSharedDatabase()

/** In both notations: the settings of the schema have underscores. */
type Given = Readonly<Record<string, unknown>>

/** What settings are set of: how by the client, and how in SQL. */
const ROUTES = {
  queue: {
    client: (tenantry: Tenantry, name: string, change: Given) =>
      tenantry.configureQueue(name, change as SettingsChange<never>),
    sql: 'select :schema.configure_queue($1, $2::jsonb) as settings',
    values: (name: string) => [name],
  },
  tenant: {
    client: (tenantry: Tenantry, name: string, change: Given) =>
      tenantry.configureTenant('mail', name, change as SettingsChange<never>),
    sql: 'select :schema.configure_tenant($1, $2, $3::jsonb) as settings',
    values: (name: string) => ['mail', name],
  },
  group: {
    client: (tenantry: Tenantry, name: string, change: Given) =>
      tenantry.configureGroup('mail', name, change as SettingsChange<never>),
    sql: 'select :schema.configure_group($1, $2, $3::jsonb) as settings',
    values: (name: string) => ['mail', name],
  },
  kind: {
    client: (tenantry: Tenantry, name: string, change: Given) =>
      tenantry.configureKind('mail', name, change as SettingsChange<never>),
    sql: 'select :schema.configure_kind($1, $2, $3::jsonb) as settings',
    values: (name: string) => ['mail', name],
  },
  key: {
    client: (tenantry: Tenantry, name: string, change: Given) =>
      tenantry.configureKey('mail', name, change as SettingsChange<never>),
    sql: 'select :schema.configure_key($1, $2, $3::jsonb) as settings',
    values: (name: string) => ['mail', name],
  },
} as const

type Target = keyof typeof ROUTES

const COUNT = 'an integer from 0 to 1000000'
const QUOTA = 'an integer from 0 to 1000000000'
const WEIGHT = 'a number from 0.001 to 1000'

const NUMBERS: readonly (readonly [Target, string, string])[] = [
  ['queue', 'concurrency', COUNT],
  ['queue', 'tenantConcurrency', COUNT],
  ['queue', 'keyConcurrency', COUNT],
  ['queue', 'quota', QUOTA],
  ['queue', 'tenantQuota', QUOTA],
  ['tenant', 'weight', WEIGHT],
  ['tenant', 'concurrency', COUNT],
  ['tenant', 'quota', QUOTA],
  ['group', 'weight', WEIGHT],
  ['kind', 'concurrency', COUNT],
  ['key', 'concurrency', COUNT],
]

const RATES: readonly (readonly [Target, string])[] = [
  ['queue', 'rate'],
  ['queue', 'tenantRate'],
  ['queue', 'keyRate'],
  ['tenant', 'rate'],
  ['kind', 'rate'],
  ['key', 'rate'],
]

const OBJECTIVES: readonly Target[] = ['queue', 'tenant', 'group']

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function snakeDeep(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snake(name), snakeDeep(member)]))
}

function client(): Tenantry {
  const { connectionString, schema } = database.schema
  return new Tenantry({ connectionString, schema })
}

/** Refused by the client, and by the schema where JSON can say it at all, in words that name the range. */
async function expectRefused(target: Target, change: Given, sentence: string, sqlSentence = sentence): Promise<void> {
  const { client: configure, sql, values } = ROUTES[target]
  const name = uniqueName(target)
  await using tenantry = client()
  await expect(configure(tenantry, name, change), JSON.stringify(change)).rejects.toMatchObject({
    code: 'CONFIGURATION',
    message: expect.stringContaining(sentence) as string,
  })
  const json = JSON.stringify(snakeDeep(change))
  if (/:null\b/.test(json)) return // NaN and Infinity
  expect(await databaseErrorOf(database.query(sql, [...values(name), json])), json).toMatchObject({
    code: '22023',
    message: expect.stringContaining(sqlSentence) as string,
  })
  const rows = await database.value<number>(
    `select (select count(*) from :schema.queue where name = $1) + (select count(*) from :schema.tenant where tenant = $1)
          + (select count(*) from :schema.tenant_group where name = $1) + (select count(*) from :schema.kind where kind = $1)
          + (select count(*) from :schema.key where key = $1)`,
    [name],
  )
  expect(Number(rows)).toBe(0)
}

test.each(NUMBERS)(
  '%s %s is refused when it is no number in its range, by the client and in SQL (B16)',
  async (target, setting, range) => {
    for (const bad of [-1, 1e10, 1e30, Number.NaN, Number.POSITIVE_INFINITY, '3', '', true, [], {}]) {
      await expectRefused(target, { [setting]: bad }, `to be ${range}, got`)
    }
    if (range !== WEIGHT) await expectRefused(target, { [setting]: 1.5 }, `to be ${range}, got 1.5`)
    else await expectRefused(target, { [setting]: 0 }, `to be ${range}, got 0`)
  },
)

test.each(RATES)('%s %s is refused outside of its range, by the client and in SQL (B16)', async (target, setting) => {
  const limits = 'limit to be a number from 0.000001 to 1000000000, got'
  for (const bad of [-1, 0, 1e10, Number.NaN, '3']) await expectRefused(target, { [setting]: { limit: bad } }, limits)
  await expectRefused(target, { [setting]: { perMs: 5 } }, limits)
  await expectRefused(
    target,
    { [setting]: { limit: 1, perMs: 0 } },
    'perMs to be a number from 1 to 1000000000, got 0',
    'per_ms to be a number from 1 to 1000000000, got 0',
  )
  await expectRefused(
    target,
    { [setting]: { limit: 1_000_001 } },
    'to be from 0.000001 to 1000000 a second, got 1000001',
  )
  await expectRefused(
    target,
    { [setting]: { limit: 0.000001, perMs: 2_000 } },
    'to be from 0.000001 to 1000000 a second, got',
  )
  for (const bad of [0, 1.5, 1_000_001, '3']) {
    await expectRefused(
      target,
      { [setting]: { limit: 1, burst: bad } },
      'burst to be an integer from 1 to 1000000, got',
    )
  }
  await expectRefused(target, { [setting]: 5 }, 'to be an object with limit', 'to be a JSON object, got 5')
  await expectRefused(
    target,
    { [setting]: { limit: 1, bust: 5 } },
    'did you mean burst?',
    'among limit, per_ms, burst, got "bust"',
  )
})

test.each(OBJECTIVES)(
  'the objective of a %s is refused outside of its range, by the client and in SQL (B16)',
  async (target) => {
    const share = 'objective.share to be a number from 0.5 to 0.9999, got'
    for (const bad of [0, 0.49, 1, 95, '0.9', Number.NaN]) {
      await expectRefused(target, { objective: { waitMs: 1_000, share: bad } }, share)
    }
    await expectRefused(target, { objective: { waitMs: 1_000 } }, share)
    for (const bad of [0, -1, 86_400_001, '5']) {
      await expectRefused(
        target,
        { objective: { waitMs: bad, share: 0.9 } },
        'objective.waitMs to be a number from 1 to 86400000, got',
        'objective.wait_ms to be a number from 1 to 86400000, got',
      )
    }
  },
)

test('words, groups and names that nobody knows are refused, by the client and in SQL (B13)', async () => {
  await expectRefused(
    'queue',
    { strategy: 'lifo' },
    "strategy to be one of 'fair', 'fifo', 'round-robin', got \"lifo\"",
  )
  await expectRefused('queue', { history: 1 }, "history to be one of 'keep', 'keep-without-payload', 'none', got 1")
  await expectRefused('queue', { charge: 'money' }, "charge to be one of 'jobs', 'time', got \"money\"")
  for (const group of ['', 'g'.repeat(256), 7])
    await expectRefused('tenant', { group }, 'of 1 to 255 bytes', 'of 1 to 255 bytes')
  await expectRefused('tenant', { wieght: 3 }, 'did you mean weight?', 'objective, got "wieght"')
  await expectRefused(
    'kind',
    { weight: 3 },
    'unknown option "weight" of configureKind',
    'among concurrency, rate, got "weight"',
  )
  await using tenantry = client()
  await expect(tenantry.configureTenant('', 'acme', {})).rejects.toThrow(
    'expected queue to be a string of 1 to 255 bytes',
  )
  await expect(tenantry.configureKey('mail', 'k'.repeat(256), {})).rejects.toThrow('expected key to be a string of 1')
  for (const bad of [null, 'x', []]) {
    await expect(tenantry.configureQueue('mail', bad as never)).rejects.toThrow('to be an object')
    const json = bad === null ? null : JSON.stringify(bad)
    const error = await databaseErrorOf(database.query(ROUTES.queue.sql, ['mail', json]))
    expect(error).toMatchObject({
      code: '22023',
      message: expect.stringContaining('settings to be a JSON object') as string,
    })
  }
})

test('what acts on single tenants or kinds is refused where the strategy cannot do it, in whichever order (B13)', async () => {
  await using tenantry = client()
  const refused = "which .* needs, got 'fifo'"
  const queue = uniqueName('plain')
  await tenantry.configureQueue(queue, { strategy: 'fifo' })
  const later: readonly (() => Promise<unknown>)[] = [
    () => tenantry.configureQueue(queue, { charge: 'time' }),
    () => tenantry.configureQueue(queue, { tenantConcurrency: 1 }),
    () => tenantry.configureQueue(queue, { tenantRate: { limit: 1 } }),
    () => tenantry.configureTenant(queue, 'a', { concurrency: 1 }),
    () => tenantry.configureTenant(queue, 'a', { rate: { limit: 1 } }),
    () => tenantry.configureTenant(queue, 'a', { group: 'g' }),
    () => tenantry.configureKind(queue, 'k', { concurrency: 1 }),
    () => tenantry.pause(queue, { tenant: 'a' }),
    () => tenantry.pause(queue, { kind: 'k' }),
  ]
  for (const set of later) {
    await tenantry.configureQueue(queue, { strategy: 'fifo' })
    await expect(set()).rejects.toMatchObject({
      code: 'CONFIGURATION',
      message: expect.stringMatching(refused) as string,
    })
    await tenantry.configureQueue(queue, { strategy: 'fair' })
    await set()
    await expect(tenantry.configureQueue(queue, { strategy: 'fifo' })).rejects.toThrow(new RegExp(refused))
    await tenantry.configureQueue(queue, { charge: null, tenantConcurrency: null, tenantRate: null })
    await tenantry.configureTenant(queue, 'a', { concurrency: null, rate: null, group: null })
    await tenantry.configureKind(queue, 'k', { concurrency: null })
    await tenantry.resume(queue, { tenant: 'a' })
    await tenantry.resume(queue, { kind: 'k' })
  }
  await tenantry.configureQueue(queue, { strategy: 'fifo', concurrency: 5, quota: 9, keyConcurrency: 2 })
  await tenantry.configureTenant(queue, 'a', { weight: 3, quota: 4 })
})
