import { onTestFinished } from 'vitest'
import type { TestSchema } from './database.js'

export interface TestRole {
  readonly role: string
  readonly connectionString: string
}

/** An ordinary role that may log in and nothing else; `settings` as in `alter role … set …`. Dropped after the test. */
export async function createRole(created: TestSchema, settings?: string): Promise<TestRole> {
  const role = `role_of_${created.schema}`
  await created.query(`create role ${role} login`)
  onTestFinished(async () => {
    await created.query(`drop owned by ${role} cascade`)
    await created.query(`drop role ${role}`)
  })
  if (settings !== undefined) await created.query(`alter role ${role} ${settings}`)
  const url = new URL(created.connectionString)
  url.username = role
  url.password = ''
  return { role, connectionString: url.href }
}
