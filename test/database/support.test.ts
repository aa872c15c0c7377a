import { expect, test } from 'vitest'
import { createSchema, createSharedSchema } from '../support/database.js'
import { until } from '../support/until.js'

test('a test has a schema of its own on a real server', async () => {
  const { schema, quoted, query } = await createSchema({ empty: true })
  await query(`create table ${quoted}.thing (id int)`)
  const [row] = await query<{ version: number; schema: string }>(
    `select current_setting('server_version_num')::int as version, to_regclass($1)::regclass::text as schema`,
    [`${schema}.thing`],
  )
  expect(row?.version).toBeGreaterThanOrEqual(140_000)
  expect(row?.schema).toBe(`${schema}.thing`)
})

test('a dropped schema is gone and its sessions are ended', async () => {
  const { query } = await createSchema({ empty: true })
  const other = await createSharedSchema({ empty: true })
  const client = await other.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  await other.drop()
  expect(await query('select from pg_namespace where nspname = $1', [other.schema])).toEqual([])
  const sessions = () => query('select from pg_stat_activity where pid = $1', [rows[0]?.pid])
  await until(async () => (await sessions()).length === 0, { until: 'the session of the dropped schema has ended' })
})
