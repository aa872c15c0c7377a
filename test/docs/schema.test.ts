import { randomUUID } from 'node:crypto'
import type { ClientBase } from 'pg'
import { expect, test } from 'vitest'
import { Tenantry } from '../../src/tenantry.js'
import { blocksIn, pages, pathOf, textOf } from './markdown.js'
import { createDatabase } from './scratch.js'

interface Table {
  readonly name: string
  readonly comment: string | null
  readonly unlogged: boolean
  readonly partitioned: boolean
  readonly columns: readonly {
    name: string
    type: string
    optional: boolean
    fallback: string | null
    comment: string | null
  }[]
  readonly constraints: readonly string[]
  readonly indexes: readonly string[]
}

const TABLES = `
select class.relname as name, obj_description(class.oid, 'pg_class') as comment,
  class.relpersistence = 'u' as unlogged, class.relkind = 'p' as partitioned,
  (select json_agg(json_build_object(
      'name', attribute.attname, 'type', format_type(attribute.atttypid, attribute.atttypmod), 'optional', not attribute.attnotnull,
      'fallback', case when attribute.attidentity <> '' then 'generated' else pg_get_expr(fallback.adbin, fallback.adrelid) end,
      'comment', col_description(class.oid, attribute.attnum)) order by attribute.attnum)
   from pg_attribute as attribute
   left join pg_attrdef as fallback on fallback.adrelid = class.oid and fallback.adnum = attribute.attnum
   where attribute.attrelid = class.oid and attribute.attnum > 0 and not attribute.attisdropped) as columns,
  coalesce((select json_agg(conname || ': ' || pg_get_constraintdef(oid) order by contype desc, conname)
   from pg_constraint where conrelid = class.oid and contype in ('p', 'c')), '[]') as constraints,
  coalesce((select json_agg(regexp_replace(pg_get_indexdef(indexrelid), '^CREATE INDEX (\\S+) ON .* USING btree ', '\\1 ') order by indexrelid::regclass::text)
   from pg_index where indrelid = class.oid and not indisprimary), '[]') as indexes
from pg_class as class
where class.relnamespace = 'tenantry'::regnamespace and class.relkind in ('r', 'p') and not class.relispartition
order by class.relname
`

const cell = (text: string) => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('tenantry.', '')

function page(tables: readonly Table[]): string {
  const sections = tables.map(({ name, comment, unlogged, partitioned, columns, constraints, indexes }) => {
    const nature = [unlogged && 'unlogged', partitioned && 'partitioned'].filter(Boolean).join(', ')
    const rows = columns.map(
      ({ name, type, optional, fallback, comment }) =>
        `| \`${name}\` | ${cell(type)}${optional ? ', may be null' : ''}${fallback ? `, ${fallback === 'generated' ? fallback : `default \`${cell(fallback)}\``}` : ''} | ${cell(comment ?? '')} |`,
    )
    const lines = (title: string, all: readonly string[]) =>
      all.length === 0 ? [] : ['', `${title}:`, '', ...all.map((one) => `- \`${cell(one).replaceAll('\\|', '|')}\``)]
    return [
      `## ${name}`,
      '',
      ...(comment ? [`${comment}${nature ? ` (${nature})` : ''}`, ''] : []),
      '| column | type | |',
      '|---|---|---|',
      ...rows,
      ...lines('Constraints', constraints),
      ...lines('Indexes', indexes),
      '',
    ].join('\n')
  })
  return `${HEAD}\n${sections.join('\n')}`
}

const HEAD = `# Schema

The tables as \`migrate()\` makes them, with their comments. Read them as you like; write to them through \`enqueue\` and the client only. This page is made from a migrated database; CONTRIBUTING.md says how.
`

async function migrated() {
  const { connectionString, pool } = await createDatabase()
  await using tenantry = new Tenantry({ connectionString })
  await tenantry.migrate()
  return pool
}

test('docs/schema.md is what a migrated database says of itself', async () => {
  const pool = await migrated()
  const { rows } = await pool.query<Table>(TABLES)
  await expect(page(rows)).toMatchFileSnapshot(pathOf('docs/schema.md'))
})

test('every function that the documents name exists', async () => {
  const pool = await migrated()
  const { rows } = await pool.query<{ name: string }>(
    "select proname::text as name from pg_proc where pronamespace = 'tenantry'::regnamespace",
  )
  const known = new Set(rows.map(({ name }) => name))
  const named = pages().flatMap((name) => [...textOf(name).matchAll(/\b[a-z_]+_v\d+\b/g)].map(([found]) => found))
  expect(named.length).toBeGreaterThan(10)
  expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
})

test('every SQL block of the documents runs against the default schema', async () => {
  const blocks = blocksIn('sql')
  expect(blocks.length).toBeGreaterThanOrEqual(5)
  const errors: string[] = []
  await withRole('app_web', async (session) => {
    for (const { page, line, code } of blocks) {
      await session.query(code).catch((error: Error) => errors.push(`${page}:${line}: ${error.message}`))
    }
  })
  expect(errors).toEqual([])
})

test('the rights that the documents name are enough to enqueue, and for nothing more', async () => {
  const grants = blocksIn('sql').find(({ code }) => code.includes('to app_web'))
  if (!grants) throw new Error('expected a block of grants to app_web')
  const role = `docs_${randomUUID().slice(0, 8)}`
  await withRole(role, async (session) => {
    await session.query(grants.code.replaceAll('app_web', role))
    await session.query(`set role ${role}`)
    await session.query("select tenantry.enqueue('send-invoice', '{}', 'acme')")
    for (const forbidden of ['select payload from tenantry.job', 'delete from tenantry.job']) {
      await expect(session.query(forbidden)).rejects.toMatchObject({ code: '42501' })
    }
  })
})

/** Lends a session on a migrated database with a role on the server, which belongs to all databases and must go again. */
async function withRole(role: string, use: (session: ClientBase) => Promise<void>): Promise<void> {
  const pool = await migrated()
  const session = await pool.connect()
  try {
    await session.query(`create role ${role}`)
    await use(session)
  } finally {
    await session.query(`reset role; drop owned by ${role}; drop role ${role}`)
    session.release()
  }
}
