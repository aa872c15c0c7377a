import pg from 'pg'
import { expect, test } from 'vitest'
import { Tenantry } from '../../src/tenantry.js'
import { blocksIn } from './markdown.js'
import { createDatabase } from './scratch.js'

test('every SQL block of the documents runs against the default schema', async () => {
  const blocks = blocksIn('sql')
  expect(blocks.length).toBeGreaterThanOrEqual(5)
  const { connectionString } = await createDatabase()
  await using tenantry = new Tenantry({ connectionString })
  await tenantry.migrate()
  const session = new pg.Client({ connectionString })
  await session.connect()
  const errors: string[] = []
  for (const { page, line, code } of blocks) {
    await session.query(code).catch((error: Error) => errors.push(`${page}:${line}: ${error.message}`))
  }
  await session.end()
  expect(errors).toEqual([])
})
