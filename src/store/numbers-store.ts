import { toTenantryError } from '../driver/pg-errors.js'
import type { SqlQuery, TextRow } from '../driver/statement.js'
import type { WindowPart } from '../numbers/window.js'
import { column } from './rows.js'
import { type Statement, type Statements, statements } from './sql.js'

/** What a worker says of itself. */
export interface Presence {
  readonly workerId: string
  readonly queues: readonly string[]
  readonly kinds: readonly string[]
  readonly slots: number
  /** Jobs that run now. */
  readonly running: number
  /** Since the worker started. */
  readonly ageMs: number
}

/** Rows of windows forgotten in one call, and calls in one round of maintenance. The next round goes on. */
const PRUNE_ROWS = 1_000
const PRUNE_CALLS_MAX = 20

/** Where workers write down what they count. Everything may be sent twice, and lost without harm. */
export class NumbersStore {
  readonly #session: { query(query: SqlQuery): Promise<readonly TextRow[]> }
  readonly #schema: string
  readonly #statements: Statements

  constructor(session: { query(query: SqlQuery): Promise<readonly TextRow[]> }, schema: string) {
    this.#session = session
    this.#schema = schema
    this.#statements = statements(schema)
  }

  /** Says that the worker is there; answers with the database's time in milliseconds since 1970. */
  async beat({ workerId, queues, kinds, slots, running, ageMs }: Presence): Promise<number> {
    const [row] = await this.#run(this.#statements.beat, [workerId, queues, kinds, slots, running, ageMs])
    if (!row) throw new Error('expected one row from beat')
    return Number(column(row, 'now_ms'))
  }

  /** Takes the worker off the list. */
  async leave(workerId: string): Promise<void> {
    await this.#run(this.#statements.leave, [workerId])
  }

  /** Puts the part in place of what was recorded of it before. */
  async record(workerId: string, of: WindowPart): Promise<void> {
    const { queue, minute, part, tenants, started, completed, failed, busySeconds, waits, runs } = of
    const counts = [tenants, started, completed, failed, busySeconds]
    const histograms = [waits, runs].flatMap(({ places, buckets, jobs }) => [places, buckets, jobs])
    await this.#run(this.#statements.record_numbers, [queue, minute, workerId, part, ...counts, ...histograms])
  }

  /** Forgets what is older than an hour; bounded, safe to run anywhere. */
  async prune(): Promise<void> {
    for (let call = 0; call < PRUNE_CALLS_MAX; call += 1) {
      const [row] = await this.#run(this.#statements.prune_numbers, [PRUNE_ROWS])
      if (Number(row?.['forgotten'] ?? 0) < PRUNE_ROWS) return
    }
  }

  async #run(statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    try {
      return await this.#session.query({ name: statement.name, text: statement.text, values })
    } catch (error) {
      throw toTenantryError(error, this.#schema)
    }
  }
}
