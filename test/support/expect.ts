import { expect } from 'vitest'
import type { SharedDatabase } from './claims.js'

/** What must hold whatever happened: called at the end of tests that mix operations. */
export async function expectSound(database: SharedDatabase): Promise<void> {
  const orphans = await database.query(
    `select id from :schema.job where state = 'running' and not exists (select from :schema.lease where lease.id = job.lease_id)`,
  )
  expect(orphans, 'running jobs whose lease is gone, which nobody would ever reclaim').toEqual([])
  const twice = await database.query('select id from :schema.job_history group by id having count(*) > 1')
  expect(twice, 'jobs that finished twice').toEqual([])
  const both = await database.query('select id from :schema.job join :schema.job_history using (id)')
  expect(both, 'jobs that are finished and still wait or run').toEqual([])
}

/** The database error, wherever the store has wrapped it. */
export async function databaseErrorOf(
  promise: Promise<unknown>,
): Promise<{ code: string; message: string; hint?: string }> {
  try {
    await promise
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return cause as { code: string; message: string; hint?: string } & Error
  }
  throw new Error('expected the statement to fail')
}
