import { type Check, type Examined, examined, skipped } from '../diagnosis/doctor/check.js'
import { CHECKS } from '../diagnosis/doctor/checks.js'
import { examineSchema } from '../diagnosis/doctor/schema.js'
import { sqlStateOf } from '../driver/pg-errors.js'
import { type MigrationConnection, migrationStatus } from './migrate.js'
import { type Statements, statements } from './sql.js'
import type { Queryable } from './store.js'
import { textRows } from './text-rows.js'

/** One session, as node-postgres has it: its settings are changed. */
export type DoctorSession = MigrationConnection & Queryable

/** Runs every check, one after the other. Changes nothing in the database. */
export async function examine(session: DoctorSession, schema: string): Promise<readonly Examined[]> {
  const queries = statements(schema)
  await textRows(session, queries.doctor_patience.text, [])
  const { applied, pending } = await migrationStatus(session, { schema })
  const first = examineSchema(applied, pending)
  if (first.verdict !== 'ok') return [first, ...CHECKS.map((check) => skipped(check, 'The schema comes first.'))]
  const rest: Examined[] = []
  for (const check of CHECKS) rest.push(await examineOne(session, queries, check))
  return [first, ...rest]
}

/** Why a check could not be made, by what the server said; anything else is a failure of the doctor's. */
const REASONS: Readonly<Record<string, string>> = {
  '42501': 'The role may not look there: ',
  '55P03': 'A table is locked, and the wait for it was too long: ',
  '57014': 'It took too long: ',
}

async function examineOne(session: DoctorSession, queries: Statements, check: Check): Promise<Examined> {
  try {
    return examined(check, await textRows(session, queries[check.query].text, check.values ?? []))
  } catch (error) {
    const reason = REASONS[sqlStateOf(error) ?? '']
    if (reason === undefined) throw error
    return skipped(check, `${reason}${(error as Error).message}`)
  }
}
