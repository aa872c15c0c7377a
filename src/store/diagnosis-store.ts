import { readWhy } from '../diagnosis/read.js'
import type { Why, WhyTarget } from '../diagnosis/why.js'
import { toTenantryError } from '../driver/pg-errors.js'
import type { SqlQuery, TextRow } from '../driver/statement.js'
import { column } from './rows.js'
import { type Statements, statements } from './sql.js'

/** Asks the database why things are as they are. */
export class DiagnosisStore {
  readonly #session: { query(query: SqlQuery): Promise<readonly TextRow[]> }
  readonly #schema: string
  readonly #hint: string | undefined
  readonly #statements: Statements

  /** `hint`: see `toTenantryError`. */
  constructor(session: { query(query: SqlQuery): Promise<readonly TextRow[]> }, schema: string, hint?: string) {
    this.#session = session
    this.#schema = schema
    this.#hint = hint
    this.#statements = statements(schema)
  }

  async why(target: WhyTarget): Promise<Why> {
    const query =
      'job' in target
        ? { ...this.#statements.why_job, values: [target.job] }
        : { ...this.#statements.why_tenant, values: [target.queue, target.tenant, target.kind ?? null] }
    const [row] = await this.#run(query)
    if (!row) throw new Error('expected one row from why')
    return readWhy(column(row, 'rule'), column(row, 'detail'))
  }

  async #run(query: SqlQuery): Promise<readonly TextRow[]> {
    try {
      return await this.#session.query(query)
    } catch (error) {
      throw toTenantryError(error, this.#schema, this.#hint)
    }
  }
}
