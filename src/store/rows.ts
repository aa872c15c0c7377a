import type { TextRow } from '../driver/statement.js'
import type { AttemptError, Job } from '../job/job.js'
import { decodePayload } from '../job/payload.js'

/** Reads one column that cannot be null. */
export function column(row: TextRow, name: string): string {
  const value = row[name]
  if (value === undefined || value === null) throw new Error(`expected column ${name} in the answer of the database`)
  return value
}

export function optionalNumber(row: TextRow, name: string): number | undefined {
  const value = row[name]
  return value === undefined || value === null ? undefined : Number(value)
}

/** Times travel as seconds since 1970, whatever DateStyle and TimeZone the session has. */
export function time(row: TextRow, name: string): Date {
  return new Date(Number(column(row, name)) * 1_000)
}

export function toJob(row: TextRow): Job {
  const { key, errors } = row
  const waitSeconds = optionalNumber(row, 'wait_seconds')
  return {
    id: column(row, 'id'),
    queue: column(row, 'queue'),
    kind: column(row, 'kind'),
    tenant: column(row, 'tenant'),
    ...(key != null && { key }),
    payload: row['payload'] === null ? undefined : decodePayload(column(row, 'payload')),
    attempt: Number(column(row, 'attempt')),
    maxAttempts: Number(column(row, 'max_attempts')),
    priority: Number(column(row, 'priority')),
    runAt: time(row, 'run_at_seconds'),
    createdAt: time(row, 'created_at_seconds'),
    errors: errors ? (JSON.parse(errors) as AttemptError[]) : [],
    ...(waitSeconds !== undefined && { waitMs: waitSeconds * 1_000 }),
  }
}
