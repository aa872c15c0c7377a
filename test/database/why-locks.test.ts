import { describe, expect, test } from 'vitest'
import { Session, useSharedDatabase } from '../support/claims.js'
import { useAskedQueues } from '../support/diagnosis.js'
import { createRole } from '../support/role.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()
const askedQueue = useAskedQueues(database)

async function pidOf(session: Session): Promise<number> {
  const [row] = await session.run<{ pid: number }>('select pg_backend_pid() as pid')
  return row?.pid ?? -1
}

describe('a row that somebody has locked', () => {
  test.each([
    ['for update', 'select from :schema.job where id = $1 for update'],
    ['for no key update', 'select from :schema.job where id = $1 for no key update'],
    ['for share', 'select from :schema.job where id = $1 for share'],
    ['an update in flight', 'update :schema.job set priority = 1 where id = $1'],
    ['a delete in flight', 'delete from :schema.job where id = $1'],
    ['a cancel in flight', `select :schema.cancel_v1($1, 'by hand')`],
  ])('%s: its pid, state and application are named', async (_name, statement) => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const session = await database.session()
    await session.run(`set application_name = 'by hand'`)
    await session.run('begin')
    await session.run(statement, [id])
    const pid = await pidOf(session)
    const why = await asked.why(id)
    expect(why).toMatchObject({
      rule: 'row_locked',
      holders: [{ pid, application: 'by hand', state: 'idle in transaction', queryMs: expect.any(Number) }],
    })
    expect(why.explanation).toMatch(
      new RegExp(`^The row of job ${id} is locked by pid ${pid} \\(by hand, idle in transaction`),
    )
    expect(why.remedies[0]?.command).toBe(`psql -c 'select pg_terminate_backend(${pid})'`)
    expect((await asked.claim()).ids).toEqual([])
    await session.run('rollback')
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test('locked inside a savepoint: the session is found all the same', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const session = await database.session()
    await session.run('begin')
    await session.run('savepoint inner_part')
    await session.run('select from :schema.job where id = $1 for update', [id])
    expect(await asked.why(id)).toMatchObject({ rule: 'row_locked', holders: [{ pid: await pidOf(session) }] })
    await session.run('rollback')
  })

  test('two sessions that share it: both are named', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const sessions = [await database.session(), await database.session()]
    for (const session of sessions) {
      await session.run('begin')
      await session.run('select from :schema.job where id = $1 for share', [id])
    }
    const pids = await Promise.all(sessions.map(pidOf))
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'row_locked' })
    const { holders } = why as unknown as { holders: readonly { pid: number }[] }
    expect(holders.map(({ pid }) => pid).sort()).toEqual(pids.sort())
    expect(why.remedies).toHaveLength(2)
    await sessions[0]?.run('rollback')
    expect(await asked.why(id)).toMatchObject({
      rule: 'row_locked',
      holders: [{ pid: await pidOf(sessions[1] as Session) }],
    })
    await sessions[1]?.run('rollback')
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })

  test.each([1, 2])('key shares, as foreign keys take them, keep no claim away: %i of them', async (count) => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const sessions = await Promise.all(Array.from({ length: count }, () => database.session()))
    for (const session of sessions) {
      await session.run('begin')
      await session.run('select from :schema.job where id = $1 for key share', [id])
    }
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
    expect((await asked.claim()).ids).toEqual([id])
    for (const session of sessions) await session.run('rollback')
  })

  test('a key share and an update together name the one that updates', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const [sharing, updating] = [await database.session(), await database.session()]
    await sharing.run('begin')
    await sharing.run('select from :schema.job where id = $1 for key share', [id])
    await updating.run('begin')
    await updating.run('update :schema.job set priority = 1 where id = $1', [id])
    const why = await asked.why(id)
    expect(why).toMatchObject({ rule: 'row_locked', holders: [{ pid: await pidOf(updating) }] })
    expect((why as unknown as { holders: readonly unknown[] }).holders).toHaveLength(1)
    await sharing.run('rollback')
    await updating.run('rollback')
  })

  test('asking leaves the row free, also for a claim that comes in between', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for key share', [id])
    const asking = await database.session()
    await asking.run('begin')
    await asking.run('select * from :schema.why_job_v1($1)', [id])
    expect((await asked.claim()).ids).toEqual([id])
    await asking.run('rollback')
    await session.run('rollback')
  })

  test('a role that may only read, in a transaction that may only read, gets the same answer', async () => {
    const asked = await askedQueue()
    const [id, free] = [await asked.enqueue(), await asked.enqueue()]
    const { connectionString } = await createRole(database.schema)
    const role = new URL(connectionString).username
    await database.query(`grant usage on schema :schema to ${role}`)
    await database.query(`grant select on all tables in schema :schema to ${role}`)
    const reader = new Session(await database.schema.connect({ connectionString }), database)
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for update', [id])
    for (const access of ['write', 'only']) {
      await reader.run(`begin read ${access}`)
      const rules = []
      for (const job of [id, free]) rules.push((await reader.run('select rule from :schema.why_job_v1($1)', [job]))[0])
      expect(rules).toEqual([{ rule: 'row_locked' }, { rule: 'turns' }])
      await reader.run('rollback')
    }
    await session.run('rollback')
  })

  test('a lock comes before a limit, and after a missing worker', async () => {
    const asked = await askedQueue({ worker: false })
    await asked.setTenant('acme', { concurrency: 1 })
    await asked.enqueue()
    const id = await asked.enqueue()
    await asked.claim()
    const session = await database.session()
    await session.run('begin')
    await session.run('select from :schema.job where id = $1 for update', [id])
    expect(await asked.why(id)).toMatchObject({ rule: 'no_worker' })
    await asked.beat()
    expect(await asked.why(id)).toMatchObject({ rule: 'row_locked' })
    await session.run('rollback')
    expect(await asked.why(id)).toMatchObject({ rule: 'tenant_limit' })
  })
})

describe('what holds up every claim', () => {
  test('the turn of the queue, held by a session that does nothing', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const session = await database.session()
    await session.run('begin')
    await asked.takeTurn(session)
    const why = await until(
      async () => {
        const answer = await asked.why(id)
        return answer.rule === 'queue_locked' ? answer : undefined
      },
      { until: 'the turn has been held for longer than a claim holds it' },
    )
    expect(why).toMatchObject({ holders: [{ pid: await pidOf(session), state: 'idle in transaction' }] })
    expect(why.explanation).toMatch(
      /^The lock of queue .* is held by pid \d+ .*; every claim of the queue waits for it\.$/,
    )
    const other = await askedQueue()
    expect(await other.why(await other.enqueue())).toMatchObject({ rule: 'next' })
    await asked.pause()
    expect(await asked.why(id)).toMatchObject({ rule: 'queue_paused' })
    await session.run('rollback')
  })

  test('claims of FIFO take no turns, so nobody can hold them up by one', async () => {
    const asked = await askedQueue()
    await asked.set({ strategy: 'fifo' })
    await database.query('update :schema.queue set governed = false where name = $1', [asked.name])
    const fair = await askedQueue()
    const [id, fairId] = [await asked.enqueue(), await fair.enqueue()]
    const session = await database.session()
    await session.run('begin')
    await asked.takeTurn(session)
    await fair.takeTurn(session)
    await until(async () => (await fair.why(fairId)).rule === 'queue_locked', {
      until: 'the turns have been held for long',
    })
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
    await session.run('rollback')
  })

  test('a table that is locked against writing, and one that cannot even be read', async () => {
    const asked = await askedQueue()
    const id = await asked.enqueue()
    const session = await database.session()
    for (const [mode, lock] of [
      ['share', 'ShareLock'],
      ['access exclusive', 'AccessExclusiveLock'],
    ] as const) {
      await session.run('begin')
      await session.run(`lock table :schema.job in ${mode} mode`)
      const why = await asked.why(id)
      expect(why).toMatchObject({
        rule: 'table_locked',
        table: 'job',
        mode: lock,
        job: id,
        holders: [{ pid: await pidOf(session) }],
      })
      expect(await asked.whyTenant('acme')).toMatchObject({ rule: 'table_locked', tenant: 'acme' })
      await session.run('rollback')
    }
    expect(await asked.why(id)).toMatchObject({ rule: 'next' })
  })
})
