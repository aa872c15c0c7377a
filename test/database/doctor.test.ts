import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Examined } from '../../src/diagnosis/doctor/check.js'
import { horizon } from '../../src/diagnosis/doctor/server.js'
import { examine } from '../../src/store/doctor.js'
import { statements } from '../../src/store/sql.js'
import { textRows } from '../../src/store/text-rows.js'
import { type Session, SharedDatabase } from '../support/claims.js'
import { AskedQueue } from '../support/diagnosis.js'
import { until } from '../support/until.js'

/** A schema for each test, since a doctor looks at all of it. */
let database: SharedDatabase
let queue: AskedQueue

beforeEach(async () => {
  database = new SharedDatabase()
  await database.start()
  queue = new AskedQueue(database, () => {
    throw new Error('nobody asks why here')
  })
  await queue.beat()
  return () => database.stop()
})

async function diagnose(): Promise<readonly Examined[]> {
  const session = await database.schema.connect()
  try {
    return await examine(session, database.schema.schema)
  } finally {
    await session.end()
  }
}

/** What one check says. */
async function check(name: string): Promise<Examined> {
  const found = (await diagnose()).find((each) => each.check === name)
  if (!found) throw new Error(`expected a check called ${name}`)
  return found
}

async function wrong(): Promise<readonly string[]> {
  return (await diagnose()).filter(({ verdict }) => verdict === 'wrong').map((each) => each.check)
}

/** A session with a transaction that is open until the test ends. */
async function openTransaction(): Promise<Session> {
  const session = await database.session()
  await session.run('begin')
  onTestFinished(() => void session.run('rollback').catch(() => {}))
  return session
}

test('a queue that is well used has nothing wrong, check by check', async () => {
  await queue.set({ concurrency: 50, tenant_concurrency: 3, tenant_rate: { limit: 100 } })
  for (const tenant of ['a', 'b', 'c']) await queue.queue.enqueueMany(20, { tenant })
  await queue.queue.enqueueMany(5, { key: 'k' })
  const claims = [await queue.claim(4), await queue.claim(8), await queue.claim(8)]
  for (const claim of claims) await queue.queue.settle(claim)
  await queue.claim(10)
  const all = await diagnose()
  expect(all.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
  expect(all.map(({ check }) => check)).toEqual([
    'schema',
    'locks',
    'workers',
    'reclaim',
    'leases',
    'limits',
    'keys',
    'starvation',
    'parked',
    'signals',
    'objectives',
    'horizon',
    'vacuum',
    'history',
  ])
})

describe('the schema', () => {
  test('that misses a migration is wrong, and nothing else is looked at', async () => {
    await database.query('delete from :schema.migration where version = (select max(version) from :schema.migration)')
    const [first, ...rest] = await diagnose()
    expect(first).toMatchObject({
      check: 'schema',
      verdict: 'wrong',
      findings: [expect.stringMatching(/^Migrations are missing: \d+ \(/)],
    })
    expect(first?.remedies[0]?.command).toBe('npx tenantry migrate')
    expect(new Set(rest.map(({ verdict }) => verdict))).toEqual(new Set(['skipped']))
  })

  test('that was never migrated says so', async () => {
    const session = await database.schema.connect()
    const [first] = await examine(session, 'no_such_schema')
    expect(first).toMatchObject({ verdict: 'wrong', findings: ['The schema was never migrated.'] })
  })
})

describe('starvation', () => {
  beforeEach(async () => {
    await queue.queue.enqueueMany(50, { tenant: 'first' })
    await queue.queue.enqueueMany(50, { tenant: 'second' })
    await queue.claim(8)
    await queue.claim(8)
  })

  test('a ready lane that was passed over for one far ahead of it is found', async () => {
    expect(await check('starvation')).toMatchObject({ verdict: 'ok' })
    await database.query(
      `update :schema.ring set pass = pass + case tenant when 'first' then 64 else 0 end,
         entered_at = now() - interval '1 minute', served_at = now() - case tenant when 'first' then interval '1 s' else '50 s' end`,
    )
    const found = await check('starvation')
    expect(found).toMatchObject({ verdict: 'wrong' })
    expect(found.findings).toHaveLength(1)
    expect(found.findings[0]).toMatch(
      /^Tenant "second", kind "send-invoice", .* ready for 1 min at pass .* tenant "first" was given a turn/,
    )
  })

  test.each([
    ['the lead is no more than one turn', `update :schema.ring set pass = pass + 63 where tenant = 'first'`],
    [
      'the lead is one turn of a small weight',
      `insert into :schema.tenant (queue, tenant, weight) select distinct queue, 'first', 0.01 from :schema.ring; update :schema.ring set pass = pass + 6000 where tenant = 'first'`,
    ],
    [
      'the other came after the turn',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; update :schema.ring set entered_at = clock_timestamp() where tenant = 'second'`,
    ],
    [
      'the other is parked',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; update :schema.ring set ready = false, parked_at = now(), parked_until = 'infinity' where tenant = 'second'`,
    ],
    [
      'the other is idle',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; update :schema.ring set ready = false where tenant = 'second'`,
    ],
    [
      'the other is of another group',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; update :schema.ring set grp = 'g' where tenant = 'second'`,
    ],
    [
      'the one ahead came back after its turn',
      `update :schema.ring set pass = pass + 1000, entered_at = clock_timestamp() where tenant = 'first'`,
    ],
    [
      'a lane of the one ahead stands lower',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; insert into :schema.ring (queue, tenant, kind, pass, ready, head_at, head_id) select queue, tenant, 'other-kind', 0, false, now(), 0 from :schema.ring where tenant = 'first'`,
    ],
    [
      'time is charged',
      `update :schema.ring set pass = pass + 1000 where tenant = 'first'; insert into :schema.queue as queue (name, charge) select distinct queue, 'time' from :schema.ring on conflict (name) do update set charge = 'time'`,
    ],
  ])('is not seen where %s', async (_why, statements) => {
    await database.query(`update :schema.ring set entered_at = now() - interval '1 minute'`)
    await database.query(`update :schema.ring set served_at = now()`)
    for (const statement of statements.split(';')) await database.query(statement)
    expect(await check('starvation')).toMatchObject({ verdict: 'ok' })
  })

  test('a kind at its limit stands still, which is no starvation of its lanes', async () => {
    const kinds = ['send-invoice', 'resize-image']
    await queue.setKind('send-invoice', { concurrency: 1 })
    await queue.queue.enqueueMany(300, { tenant: 'first', kind: 'resize-image' })
    await queue.claim(8, { kinds })
    for (let claim = 0; claim < 4; claim += 1) await queue.queue.settle(await queue.claim(60, { kinds }))
    expect(await check('starvation')).toMatchObject({ verdict: 'ok' })
    await queue.setKind('send-invoice', { concurrency: null })
    await queue.claim(1, { kinds })
    expect(await check('starvation')).toMatchObject({ verdict: 'ok' })
  })

  test('is seen where none of this holds', async () => {
    await database.query(`update :schema.ring set entered_at = now() - interval '1 minute', served_at = now()`)
    await database.query(`update :schema.ring set pass = pass + 1000 where tenant = 'first'`)
    expect(await check('starvation')).toMatchObject({ verdict: 'wrong' })
  })

  test('random work with weights, groups, kinds and limits never looks like starvation', async () => {
    const kinds = ['send-invoice', 'resize-image']
    await queue.setTenant('gold', { weight: 7 })
    await queue.setTenant('tiny', { weight: 0.05, group: 'g' })
    await queue.setTenant('member', { group: 'g', concurrency: 3 })
    for (let round = 0; round < 30; round += 1) {
      for (const [number, tenant] of ['gold', 'tiny', 'member', 'first', 'late'].entries()) {
        if ((round * 7 + number * 3) % 4 !== 0) continue
        await queue.queue.enqueueMany(1 + ((round * 13 + number) % 30), {
          tenant,
          kind: kinds[(round + number) % 2] as string,
        })
      }
      const claim = await queue.claim(1 + ((round * 11) % 40), { kinds })
      if (round % 3 !== 0) await queue.queue.settle(claim)
      expect(await check('starvation'), `after round ${round}`).toMatchObject({ verdict: 'ok' })
    }
  })
})

describe('parked lanes', () => {
  beforeEach(async () => {
    await queue.setTenant('acme', { concurrency: 1 })
    await queue.queue.enqueueMany(3)
    await queue.claim(2)
    await database.query(
      `update :schema.ring set ready = false, parked_at = now() - interval '2 minutes', parked_until = 'infinity'`,
    )
    await database.query('delete from :schema.notice')
  })

  test('are right while their tenant is at its limit, or paused', async () => {
    expect(await check('parked')).toMatchObject({ verdict: 'ok' })
    await queue.setTenant('acme', { concurrency: null })
    await queue.pause({ tenant: 'acme' })
    await database.query('delete from :schema.notice')
    expect(await check('parked')).toMatchObject({ verdict: 'ok' })
  })

  test('are wrong when nothing binds, unless a notice about it waits', async () => {
    await queue.setTenant('acme', { concurrency: 2 })
    expect(await check('parked'), 'the setting left a notice').toMatchObject({ verdict: 'ok' })
    await database.query('delete from :schema.notice')
    expect((await check('parked')).findings).toEqual([
      expect.stringMatching(
        /^Tenant "acme", kind "send-invoice", .* has been parked for 2 min, and is neither paused nor at a limit\.$/,
      ),
    ])
  })

  test('are wrong when the token they waited for has long been there', async () => {
    await queue.setTenant('acme', { concurrency: null, rate: { limit: 1, per_ms: 3_600_000, burst: 1 } })
    await database.query('delete from :schema.notice')
    await database.query(`update :schema.ring set parked_until = now() - interval '90 s'`)
    await database.query(
      `insert into :schema.bucket (queue, scope, name, full_at) values ($1, 'tenant', 'acme', now() + interval '1 h')
       on conflict (queue, scope, name) do update set full_at = excluded.full_at`,
      [queue.name],
    )
    expect(await check('parked'), 'no token').toMatchObject({ verdict: 'ok' })
    await database.query('delete from :schema.bucket')
    expect(await check('parked'), 'a token').toMatchObject({ verdict: 'wrong' })
  })
})

describe('running jobs', () => {
  test('without a lease row are found', async () => {
    const id = await queue.enqueue()
    const { leaseId } = await queue.claim()
    expect(await wrong()).toEqual([])
    await database.query('delete from :schema.lease where id = $1', [leaseId])
    expect((await check('leases')).findings[0]).toContain(`Job ${id} of tenant "acme"`)
  })

  test('whose lease ran out and whom nobody reclaims are found', async () => {
    await queue.enqueue()
    await queue.claim()
    await database.query(`update :schema.lease set expires_at = now() - interval '20 s'`)
    expect(await check('reclaim')).toMatchObject({ verdict: 'ok' })
    await database.query(`update :schema.lease set expires_at = now() - interval '40 s'`)
    expect((await check('reclaim')).findings[0]).toMatch(
      new RegExp(`^A lease of worker "${queue.worker}", .* ran out (39|4\\d)`),
    )
  })

  test('beyond the limits are counted anew, for queue, kind, tenant and key', async () => {
    await queue.queue.enqueueMany(4)
    await queue.set({ key_concurrency: 2 })
    await queue.queue.enqueueMany(2, { key: 'k', tenant: 'keyed' })
    expect((await queue.claim(10)).ids).toHaveLength(6)
    expect(await check('limits')).toMatchObject({ verdict: 'ok' })
    await queue.set({ concurrency: 5, key_concurrency: 1 })
    await queue.setKind('send-invoice', { concurrency: 4 })
    await queue.setTenant('acme', { concurrency: 3 })
    expect([...(await check('limits')).findings].sort()).toEqual([
      `2 jobs of key "k", queue "${queue.name}", run, of at most 1.`,
      `4 jobs of tenant "acme", queue "${queue.name}", run, of at most 3.`,
      `6 jobs of kind "send-invoice", queue "${queue.name}", run, of at most 4.`,
      `6 jobs of queue "${queue.name}", queue "${queue.name}", run, of at most 5.`,
    ])
  })
})

describe('waiting jobs', () => {
  test('that are blocked by a key which nothing holds are found, once they have waited', async () => {
    const id = await queue.enqueue({ key: 'k' })
    await database.query('delete from :schema.notice')
    expect(await check('keys'), 'due a moment ago').toMatchObject({ verdict: 'ok' })
    await database.query(`update :schema.job set run_at = now() - interval '2 minutes' where id = $1`, [id])
    const found = await check('keys')
    expect(found.findings).toEqual([
      expect.stringMatching(new RegExp(`^Job ${id} has waited for 2 min for key "k" .*, which nothing holds`)),
    ])
    expect(found.remedies[0]?.command).toBe(`npx tenantry why ${id}`)
  })

  test.each([
    ['somebody holds it', `update :schema.job set state = 'available' where id = $1`],
    [
      'one of its jobs waits for a retry',
      `update :schema.job set state = 'scheduled', run_at = now() + interval '1 h', claimed_at = now() where id = $1`,
    ],
    [
      'a notice about it waits',
      `insert into :schema.notice (queue, kind, key) select queue, '', key from :schema.job where id = $1`,
    ],
    [
      'the queue is paused',
      `insert into :schema.queue as queue (name, paused_at) select queue, now() from :schema.job where id = $1 on conflict (name) do update set paused_at = now()`,
    ],
    ['its kind has no worker', `delete from :schema.worker where $1::bigint > 0`],
    [
      'its limit is 0',
      `insert into :schema.key (queue, key, concurrency) select queue, key, 0 from :schema.job where id = $1`,
    ],
    [
      'its rate has no token',
      `with set as (insert into :schema.key (queue, key, rate_per_second, burst) select queue, key, 0.001, 1 from :schema.job where id = $1) insert into :schema.bucket (queue, scope, name, full_at) select queue, 'key', key, now() + interval '900 s' from :schema.job where id = $1`,
    ],
  ])('are right to wait for their key where %s', async (_why, statement) => {
    const first = await queue.enqueue({ key: 'k' })
    await queue.enqueue({ key: 'k' })
    await database.query('delete from :schema.notice')
    await database.query(`update :schema.job set run_at = now() - interval '2 minutes'`)
    expect(await check('keys')).toMatchObject({ verdict: 'wrong' })
    await database.query(statement, [first])
    expect(await check('keys')).toMatchObject({ verdict: 'ok' })
  })

  test('of a kind that no worker knows are found: available, blocked, and due', async () => {
    await queue.enqueue({ kind: 'known-later', delayMs: 3_600_000 })
    expect(await check('workers')).toMatchObject({ verdict: 'ok' })
    await queue.queue.enqueueMany(2, { kind: 'misspelt' })
    await queue.enqueue({ kind: 'keyed', key: 'k' })
    const due = await queue.enqueue({ kind: 'due', delayMs: 3_600_000 })
    await database.query('update :schema.job set run_at = now() where id = $1', [due])
    const { findings } = await check('workers')
    expect(findings).toEqual([
      `Kind "due" of queue "${queue.name}" has jobs that are due (0 available jobs), and no worker knows it.`,
      `Kind "keyed" of queue "${queue.name}" has jobs that are due (0 available jobs), and no worker knows it.`,
      `Kind "misspelt" of queue "${queue.name}" has jobs that are due (2 available jobs), and no worker knows it.`,
    ])
  })

  test('signals that no worker will ever fold in, or far too many of them, are found', async () => {
    await queue.claim()
    await queue.enqueue()
    expect(await check('signals')).toMatchObject({ verdict: 'ok' })
    await database.query('delete from :schema.worker')
    expect((await check('signals')).findings).toEqual([
      `1 signal of queue "${queue.name}", kind "send-invoice", wait to be folded in by a claim.`,
    ])
    await queue.beat()
    await database.query(
      `insert into :schema.notice (queue, kind, tenant) select $1, '', 't' from generate_series(1, 10001)`,
      [queue.name],
    )
    expect((await check('signals')).findings).toEqual([
      `10,001 notices of queue "${queue.name}" wait to be folded in by a claim.`,
    ])
  })

  test('that start later than an objective allows are found', async () => {
    await queue.set({ objective: { wait_ms: 1_000, share: 0.9 } })
    expect(await check('objectives')).toMatchObject({ verdict: 'ok' })
    const id = await queue.enqueue()
    await database.query(
      `update :schema.job set run_at = now() - interval '1 minute', order_at = now() - interval '1 minute' where id = $1`,
      [id],
    )
    const found = await check('objectives')
    expect(found).toMatchObject({ verdict: 'wrong' })
    expect(found.findings[0]).toContain('of the jobs started within 1.0 s; the objective is 90 %.')
    expect(found.remedies[0]?.command).toContain('why --tenant')
  })
})

describe('the server', () => {
  test('somebody who holds the turn of a queue, or a table, is found', async () => {
    await queue.enqueue()
    await queue.claim()
    expect(await check('locks')).toMatchObject({ verdict: 'ok' })
    const session = await openTransaction()
    await queue.takeTurn(session)
    await session.run('lock table :schema.job in share mode')
    const findings = await until(
      async () => {
        const { findings } = await check('locks')
        return findings.length === 2 ? findings : undefined
      },
      { until: 'the turn has been held for long' },
    )
    expect([...findings].sort()).toEqual([
      expect.stringMatching(/^Table "job" is locked for .* by pid \d+ \(.*idle in transaction\)\.$/),
      expect.stringMatching(/^The lock of queue .* is held for .* by pid \d+ \(.*idle in transaction\)\.$/),
    ])
  })

  test('a table that cannot be read makes checks be skipped, and the one about locks say why', async () => {
    const session = await openTransaction()
    await session.run('lock table :schema.job in access exclusive mode')
    const all = await diagnose()
    expect(all.find((each) => each.check === 'locks')).toMatchObject({ verdict: 'wrong' })
    expect(all.find((each) => each.check === 'leases')).toMatchObject({
      verdict: 'skipped',
      findings: [expect.stringContaining('A table is locked')],
    })
  })

  test('a transaction that has long been open is found', async () => {
    expect(await check('horizon')).toMatchObject({ verdict: 'ok' })
    const session = await openTransaction()
    await session.run('set transaction isolation level repeatable read')
    const [own] = await session.run<{ pid: number }>('select pg_backend_pid() as pid')
    const client = await database.schema.connect()
    const { text } = statements(database.schema.schema).doctor_horizon
    const rows = await textRows(client, text, [0])
    const row = rows.find(({ pid }) => pid === String(own?.pid))
    if (!row) throw new Error('expected the open transaction to be found')
    expect(horizon.describe(row)).toMatch(/^A transaction, pid \d+ \(.*idle in transaction\), has been open for /)
    expect(horizon.remedy(row).sentence).toBe(`End the transaction of pid ${own?.pid}, or the session with it.`)
    expect(horizon.describe({ sort: 'prepared transaction', name: 'x', open_ms: '600000' })).toBe(
      'A transaction, prepared as "x", has been open for 10 min.',
    )
  })

  test('a table without autovacuum is found', async () => {
    expect(await check('vacuum')).toMatchObject({ verdict: 'ok' })
    await database.query('alter table :schema.lease set (autovacuum_enabled = false)')
    expect((await check('vacuum')).findings).toEqual([
      expect.stringMatching(/^Autovacuum is off for the table of table "lease": /),
    ])
  })

  test('missing partitions of the history are found', async () => {
    expect(await check('history')).toMatchObject({ verdict: 'ok' })
    const name = await database.value<string>(
      `select 'job_history_settled_' || to_char(now() at time zone 'UTC' + interval '1 day', 'YYYYMMDD')`,
    )
    await database.query(`drop table :schema.${name}`)
    expect((await check('history')).findings).toEqual([`Partition "${name}" is missing.`])
  })

  test('a role that may not look is told so, check by check', async () => {
    const role = `doctor_${database.schema.schema}`
    await database.query(`create role ${role} login`)
    await database.query(`grant usage on schema :schema to ${role}`)
    await database.query(`grant select on :schema.migration to ${role}`)
    const url = new URL(database.schema.connectionString)
    url.username = role
    const session = await database.schema.connect({ connectionString: url.href })
    const all = await examine(session, database.schema.schema)
    expect(all.find((each) => each.check === 'leases')).toMatchObject({
      verdict: 'skipped',
      findings: [expect.stringContaining('may not look there')],
    })
    await session.end()
    await database.query(`drop owned by ${role}`)
    await database.query(`drop role ${role}`)
  })
})
