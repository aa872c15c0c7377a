import { createHash } from 'node:crypto'
import { withSchema } from './schema-name.js'
import { QUERIES } from './sql.gen.js'

/** A statement of ours, ready to be sent: its text and the name under which the server may keep it prepared. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export type Statements = Readonly<Record<keyof typeof QUERIES, Statement>>

/** Every query of `sql/queries` for one schema. */
export function statements(schema: string): Statements {
  const entries = Object.entries<string>(QUERIES).map(([query, text]) => [
    query,
    statement(query, withSchema(text, schema)),
  ])
  return Object.freeze(Object.fromEntries(entries) as Record<keyof typeof QUERIES, Statement>)
}

/** The name depends on the text: two schemas, or two versions, may meet in one session of a shared pool. */
function statement(query: string, text: string): Statement {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return Object.freeze({ name: `tenantry_${query.slice(0, 40)}_${digest}`, text })
}
