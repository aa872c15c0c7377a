import { expect, inject, it } from 'vitest'
import { runCommand, startCommand } from '../support/command-line.js'
import { createSchema } from '../support/database.js'

async function commandLine() {
  const { schema, query, quoted } = await createSchema()
  const environment = { DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: schema }
  const run = (...args: readonly string[]) => runCommand(args, { environment })
  const start = (...args: readonly string[]) => startCommand(args, { environment })
  const waiting = async () =>
    (await query<{ queue: string }>(`select queue from ${quoted}.job where state <> 'running' order by id`)).map(
      ({ queue }) => queue,
    )
  const enqueue = (...jobs: readonly string[]) =>
    query(
      `select ${quoted}.enqueue(kind, '{}', tenant, jsonb_build_object('queue', queue))
       from unnest($1::text[]) as job (job)
       cross join lateral (select split_part(job, ' ', 1), split_part(job, ' ', 2), split_part(job, ' ', 3)) as part (queue, kind, tenant)`,
      [jobs],
    )
  return { run, start, waiting, enqueue, query, quoted }
}

it('pause and resume a queue, a tenant or a kind', async () => {
  const { run, query, quoted } = await commandLine()
  expect(await run('pause', 'mail')).toMatchObject({ exitCode: 0, stdout: 'Queue mail is paused.\n' })
  expect((await run('pause', 'mail', '--tenant', 'acme')).stdout).toBe('Queue mail, tenant acme is paused.\n')
  expect((await run('pause', 'mail', '--kind', 'greet')).stdout).toBe('Queue mail, kind greet is paused.\n')
  const paused = () =>
    query(`select 'queue' as of from ${quoted}.queue where paused_at is not null
           union all select 'tenant' from ${quoted}.tenant where paused_at is not null
           union all select 'kind' from ${quoted}.kind where paused_at is not null`)
  expect(await paused()).toHaveLength(3)
  expect((await run('tenants', 'show', 'acme', '--queue', 'mail')).stdout).toMatch(/^paused +since 2/m)
  await run('resume', 'mail')
  await run('resume', 'mail', '--tenant', 'acme')
  expect((await run('resume', 'mail', '--kind', 'greet')).stdout).toBe('Queue mail, kind greet is not paused.\n')
  expect(await paused()).toEqual([])
  expect(await run('pause', 'mail', '--kind', 'greet', '--tenant', 'acme')).toMatchObject({ exitCode: 78 })
})

it('cancel, purge and move what waits, chosen by tenant and kind', async () => {
  const { run, waiting, enqueue, query, quoted } = await commandLine()
  await enqueue('mail greet a', 'mail greet b', 'mail send a', 'mail send b', 'mail send c', 'other greet a')
  expect((await run('move', 'mail', 'bulk', '--tenant', 'a', '--kind', 'greet')).stdout).toBe('1 job moved.\n')
  expect((await run('cancel-all', 'mail', '--kind', 'greet', '--reason', 'enough', '--yes')).stdout).toBe(
    '1 job cancelled.\n',
  )
  expect(JSON.parse((await run('purge', 'mail', '--tenant', 'c', '--yes', '--json')).stdout)).toEqual({ jobs: 1 })
  expect(await waiting()).toEqual(['bulk', 'mail', 'mail', 'other'])
  expect(await query(`select tenant, errors -> 0 ->> 'message' as message from ${quoted}.job_history`)).toEqual([
    { tenant: 'b', message: 'enough' },
  ])
  expect((await run('purge', 'mail', '--history', '--yes')).stdout).toBe('3 jobs deleted.\n')
  expect(await query(`select from ${quoted}.job_history`)).toEqual([])
})

it.each([
  [['cancel-all', 'mail'], 2, 'this cancels every job that waits in queue mail; add --yes to do it'],
  [
    ['purge', 'mail', '--tenant', 'a'],
    2,
    'this deletes every job that waits, without a trace, in queue mail, tenant a; add --yes to do it',
  ],
  [
    ['purge', 'mail', '--history'],
    2,
    'this deletes every job that waits or has ended, without a trace, in queue mail; add --yes to do it',
  ],
  [['cancel', '1'], 2, "unknown command 'cancel'"],
  [['cancel-all'], 2, "missing required argument 'queue'"],
  [['move', 'mail', 'mail'], 78, 'expected toQueue to be another queue'],
  [['drain', 'mail', '--timeout', '5'], 2, 'Expected a duration from 1ms to'],
  [['drain', 'mail', '--until', 'done'], 2, 'Allowed choices are idle, empty.'],
] as const)('refuses %j with %i, says why, and changes nothing', async (args, exitCode, complaint) => {
  const { run, waiting, enqueue } = await commandLine()
  await enqueue('mail greet a')
  const ended = await run(...args)
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).toContain(complaint)
  expect(await waiting()).toEqual(['mail'])
})

it('drain pauses and waits, and says when the time was over first', async () => {
  const { run, start, enqueue, query, quoted } = await commandLine()
  await enqueue('mail greet a', 'mail greet a')
  const lease = '00000000-0000-4000-8000-000000000001'
  await query(`select ${quoted}.claim_v1('mail', $1, 'test', array['greet'], 1, 60000, false)`, [lease])
  const late = await run('drain', 'mail', '--timeout', '100ms')
  expect(late).toMatchObject({ exitCode: 1, stdout: '' })
  expect(late.stderr).toContain('queue mail is not idle yet; its jobs go on')
  const draining = start('drain', 'mail')
  const [{ id } = { id: '' }] = await query<{ id: string }>(
    `select id::text from ${quoted}.job where state = 'running'`,
  )
  await query(`select ${quoted}.complete_v1('mail', array[$1::bigint], array[$2::uuid], array[$2::uuid])`, [id, lease])
  expect(await draining.ended).toMatchObject({ exitCode: 0, stdout: 'queue mail is idle.\n' })
  await run('cancel-all', 'mail', '--yes')
  expect((await run('drain', 'mail', '--until', 'empty')).stdout).toBe('queue mail is empty.\n')
})

it('a full queue refuses an enqueue and says when to come back', async () => {
  const { run } = await commandLine()
  await run('queues', 'set', 'mail', '--quota', '1')
  await run('enqueue', 'greet', '--tenant', 'a', '--queue', 'mail')
  const refused = await run('enqueue', 'greet', '--tenant', 'a', '--queue', 'mail')
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toContain(
    'expected at most 1 jobs of queue "mail" to wait, got 1 and 1 more; enqueue again in',
  )
})

it('a key is taken from the command line and shown with its job', async () => {
  const { run } = await commandLine()
  const { stdout: id } = await run('enqueue', 'greet', '--tenant', 'a', '--key', 'account-7')
  const { stdout } = await run('jobs', 'show', id.trim())
  expect(stdout).toContain('state       blocked\n')
  expect(stdout).toContain('key         account-7\n')
  expect((await run('enqueue', 'greet', '--tenant', 'a', '--key', '')).exitCode).toBe(78)
})
