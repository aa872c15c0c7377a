import { toTenantryError } from '../driver/pg-errors.js'
import type { SqlQuery, TextRow } from '../driver/statement.js'
import type { QueueNumbers, TenantNumbers } from '../numbers/numbers.js'
import type { WindowPart } from '../numbers/window.js'
import { toQueueNumbers, toTenantNumbers } from './numbers-rows.js'
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

/** What the store needs of a connection or a pool. */
export interface NumbersSession {
  query(query: SqlQuery): Promise<readonly TextRow[]>
}

/** Where workers write down what they count, and operators read it. What is written may be sent twice, and lost without harm. */
export class NumbersStore {
  readonly #session: NumbersSession
  readonly #schema: string
  readonly #hint: string | undefined
  readonly #statements: Statements

  /** `hint`: see `toTenantryError`. */
  constructor(session: NumbersSession, schema: string, hint?: string) {
    this.#session = session
    this.#schema = schema
    this.#hint = hint
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

  async tenants(
    queue: string,
    { countMax, minutes }: { readonly countMax: number; readonly minutes: number },
  ): Promise<TenantNumbers[]> {
    const rows = await this.#run(this.#statements.tenant_numbers, [queue, countMax, minutes])
    return rows.map(toTenantNumbers)
  }

  /** Of one queue, or for null of all. */
  async queues(
    queue: string | null,
    { countMax, minutes }: { readonly countMax: number; readonly minutes: number },
  ): Promise<QueueNumbers[]> {
    const rows = await this.#run(this.#statements.queue_numbers, [queue, countMax, minutes])
    return rows.map(toQueueNumbers)
  }

  async #run(statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    try {
      return await this.#session.query({ name: statement.name, text: statement.text, values })
    } catch (error) {
      throw toTenantryError(error, this.#schema, this.#hint)
    }
  }
}
