import type { QueueNumbers, TenantNumbers } from '../numbers/numbers.js'
import type { WindowPart } from '../numbers/window.js'
import { Database, type Send } from './database.js'
import { toQueueNumbers, toTenantNumbers } from './numbers-rows.js'
import { column } from './rows.js'

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

/** Rows of windows forgotten in one call. */
const PRUNE_ROWS = 1_000

/** Where workers write down what they count, and operators read it. What is written may be sent twice, and lost without harm. */
export class NumbersStore {
  readonly #database: Database

  /** `advice`: see `toTenantryError`. */
  constructor(session: { readonly query: Send }, schema: string, advice?: string) {
    this.#database = new Database((query) => session.query(query), { schema, advice })
  }

  /** Says that the worker is there; answers with the database's time in milliseconds since 1970. */
  async beat({ workerId, queues, kinds, slots, running, ageMs }: Presence): Promise<number> {
    const values = [workerId, queues, kinds, slots, running, ageMs]
    const row = await this.#database.one(this.#database.statements.beat, values)
    return Number(column(row, 'now_ms'))
  }

  /** Takes the worker off the list. */
  async leave(workerId: string): Promise<void> {
    await this.#database.run(this.#database.statements.leave, [workerId])
  }

  /** Puts the part in place of what was recorded of it before. */
  async record(workerId: string, of: WindowPart): Promise<void> {
    const { queue, minute, part, tenants, started, completed, failed, busySeconds, waits, runs } = of
    const counts = [tenants, started, completed, failed, busySeconds]
    const histograms = [waits, runs].flatMap(({ places, buckets, jobs }) => [places, buckets, jobs])
    await this.#database.run(this.#database.statements.record_numbers, [
      queue,
      minute,
      workerId,
      part,
      ...counts,
      ...histograms,
    ])
  }

  /** Forgets what is older than an hour; bounded, safe to run anywhere. */
  async prune(): Promise<void> {
    await this.#database.prune(async () => {
      const row = await this.#database.one(this.#database.statements.prune_numbers, [PRUNE_ROWS])
      return Number(column(row, 'forgotten')) >= PRUNE_ROWS
    })
  }

  async tenants(
    queue: string,
    { countMax, minutes }: { readonly countMax: number; readonly minutes: number },
  ): Promise<TenantNumbers[]> {
    const rows = await this.#database.run(this.#database.statements.tenant_numbers, [queue, countMax, minutes])
    return rows.map(toTenantNumbers)
  }

  /** Of one queue, or for null of all. */
  async queues(
    queue: string | null,
    { countMax, minutes }: { readonly countMax: number; readonly minutes: number },
  ): Promise<QueueNumbers[]> {
    const rows = await this.#database.run(this.#database.statements.queue_numbers, [queue, countMax, minutes])
    return rows.map(toQueueNumbers)
  }
}
