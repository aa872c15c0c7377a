import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.js'
import { type Compiled, compile } from './compiled.js'
import { blocksIn, type CodeBlock } from './markdown.js'
import { createDatabase, run } from './scratch.js'

const blocks = blocksIn('ts')
let compiled: Compiled

const nameOf = ({ page, line }: CodeBlock) => `${page.replaceAll(/\W/g, '-')}-${line}.ts`

beforeAll(() => {
  // The empty export makes a block that imports nothing a module, where `await` is allowed.
  compiled = compile(new Map(blocks.map((block) => [nameOf(block), `${block.code}export {}\n`])))
})

afterAll(() => compiled.remove())

test('every TypeScript block of the documents compiles against the built package', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(5)
  expect(compiled.errors).toEqual([])
})

/** Opens the transaction that the example takes for granted, and commits it when the example has run to its end. */
const RUNNER = `
import pg from 'pg'
globalThis.client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
await client.query('begin')
await import(process.argv[2])
await client.query('commit')
`

test('the main example of the README runs both of its jobs on a real server', async () => {
  const [example] = blocks.filter(({ page }) => page === 'README.md')
  if (!example) throw new Error('expected a TypeScript block in README.md')
  const { connectionString, pool } = await createDatabase()
  const runner = join(compiled.folder, 'run-example.js')
  writeFileSync(runner, RUNNER)
  const program = run(runner, [join(compiled.folder, nameOf(example).replace('.ts', '.js'))], {
    DATABASE_URL: connectionString,
  })
  const completed = async () => {
    if (program.process.exitCode !== null) throw new Error(program.output())
    const { rows } = await pool
      .query("select payload ->> 'invoiceId' as id from tenantry.job_history where state = 'completed' order by id")
      .catch(() => ({ rows: [] })) // not migrated yet
    return rows.length === 2 ? rows : undefined
  }
  expect(await until(completed, { until: 'both jobs are completed' })).toEqual([{ id: '42' }, { id: '43' }])
})
