import { isMissingPartition, toTenantryError } from '../driver/pg-errors.js'
import type { SqlQuery, TextRow } from '../driver/statement.js'
import { HISTORY_DAYS_AHEAD } from '../limits.js'
import { type Statement, type Statements, statements } from './sql.js'

/** Sends one statement, in whatever way a store has. */
export type Send = (query: SqlQuery) => Promise<readonly TextRow[]>

/** Where statements of ours are sent, and the schema that they are about. */
export interface Place {
  readonly schema: string
  /** See `toTenantryError`. */
  readonly advice: string | undefined
}

/** The statements of one schema, sent so that what fails is an error of ours. */
export class Database {
  readonly statements: Statements
  readonly #send: Send
  readonly #place: Place

  constructor(send: Send, place: Place) {
    this.statements = statements(place.schema)
    this.#send = send
    this.#place = place
  }

  async run({ name, text }: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    try {
      return await this.#send({ name, text, values })
    } catch (error) {
      throw this.translated(error)
    }
  }

  /** The only row of a statement that answers with one whatever happens, so that silence is never taken for an answer. */
  async one(statement: Statement, values: readonly unknown[]): Promise<TextRow> {
    const [row] = await this.run(statement, values)
    if (!row) throw new Error(`broken invariant: expected one row from ${statement.name}`)
    return row
  }

  /** A partition can be missing when no worker ran for a fortnight: then it is made here, and nothing is lost. */
  async withHistory<Answer>(write: () => Promise<Answer>): Promise<Answer> {
    try {
      return await write()
    } catch (error) {
      if (!isMissingPartition(error, 'job_history')) throw error
      await this.run(this.statements.ensure_history, [HISTORY_DAYS_AHEAD])
      return write()
    }
  }

  /** Calls as long as the answer is that there may be more, or often enough for this time: the next round goes on. */
  async prune(call: () => Promise<boolean>): Promise<void> {
    for (let calls = 0; calls < PRUNE_CALLS_MAX; calls += 1) {
      if (!(await call())) return
    }
  }

  translated(error: unknown): Error {
    return toTenantryError(error, this.#place.schema, this.#place.advice)
  }
}

/** Calls of each kind in one round of maintenance, since claims wait behind them. */
const PRUNE_CALLS_MAX = 20
