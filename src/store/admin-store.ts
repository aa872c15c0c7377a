import { isMissingPartition, sqlStateOf, toTenantryError } from '../driver/pg-errors.js'
import type { TextRow } from '../driver/statement.js'
import { ConfigurationError } from '../errors.js'
import type { JobFilter } from '../job/filter.js'
import { HISTORY_DAYS_AHEAD } from '../limits.js'
import type {
  Configured,
  GroupSettings,
  KeySettings,
  KindSettings,
  QueueSettings,
  SettingsChange,
  TenantSettings,
} from '../settings/settings.js'
import { column } from './rows.js'
import { settingsJson, settingsOf } from './settings-json.js'
import { type Statement, type Statements, statements } from './sql.js'
import type { Queryable } from './store.js'
import { textRows } from './text-rows.js'

/** Runs something in a transaction at READ COMMITTED. */
export type Transaction = <Result>(run: (client: Queryable) => Promise<Result>) => Promise<Result>

/** A bounded part of an operation on many jobs. */
export interface BatchRequest {
  /** Jobs at most. */
  readonly limit: number
  /** Where the last batch stopped; undefined for the first. */
  readonly cursor: string | undefined
}

export interface Batch {
  readonly changed: number
  /** Where the next one goes on; undefined when nothing is left. */
  readonly cursor?: string
}

/** Counted no further than this. */
const OCCUPANCY_MAX = 10_000

/** What operators change, on PostgreSQL. Each call is a transaction of its own. */
export class AdminStore {
  readonly #transaction: Transaction
  readonly #schema: string
  readonly #hint: string | undefined
  readonly #statements: Statements

  /** `hint`: see `toTenantryError`. */
  constructor(transaction: Transaction, schema: string, hint?: string) {
    this.#transaction = transaction
    this.#schema = schema
    this.#hint = hint
    this.#statements = statements(schema)
  }

  configureQueue(queue: string, change: SettingsChange<QueueSettings>): Promise<Configured<QueueSettings>> {
    return this.#configure(this.#statements.configure_queue, [queue, settingsJson(change)], ['queue'])
  }

  configureTenant(
    queue: string,
    tenant: string,
    change: SettingsChange<TenantSettings>,
  ): Promise<Configured<TenantSettings>> {
    return this.#configure(
      this.#statements.configure_tenant,
      [queue, tenant, settingsJson(change)],
      ['queue', 'tenant'],
    )
  }

  configureGroup(queue: string, group: string, change: SettingsChange<GroupSettings>): Promise<GroupSettings> {
    return this.#configure(this.#statements.configure_group, [queue, group, settingsJson(change)], ['queue', 'group'])
  }

  configureKind(queue: string, kind: string, change: SettingsChange<KindSettings>): Promise<Configured<KindSettings>> {
    return this.#configure(this.#statements.configure_kind, [queue, kind, settingsJson(change)], ['queue', 'kind'])
  }

  configureKey(queue: string, key: string, change: SettingsChange<KeySettings>): Promise<KeySettings> {
    return this.#configure(this.#statements.configure_key, [queue, key, settingsJson(change)], ['queue', 'key'])
  }

  /** A pause that is on stays on since when it was. */
  async pause(queue: string, scope: JobFilter): Promise<void> {
    await this.#run(this.#statements.pause, [queue, JSON.stringify(scope)])
  }

  async resume(queue: string, scope: JobFilter): Promise<void> {
    await this.#run(this.#statements.resume, [queue, JSON.stringify(scope)])
  }

  /** Cancels jobs that wait. */
  async cancelBatch(
    queue: string,
    filter: JobFilter,
    request: BatchRequest & { readonly reason: string },
  ): Promise<Batch> {
    const { reason, limit, cursor } = request
    const values = [queue, JSON.stringify(filter), reason, limit, cursor ?? null]
    try {
      return batchOf(await this.#send(this.#statements.cancel_batch, values))
    } catch (error) {
      if (!isMissingPartition(error, 'job_history')) throw this.#translated(error)
      await this.#run(this.#statements.ensure_history, [HISTORY_DAYS_AHEAD])
      return batchOf(await this.#run(this.#statements.cancel_batch, values))
    }
  }

  /** Deletes jobs that wait. */
  async purgeBatch(queue: string, filter: JobFilter, { limit, cursor }: BatchRequest): Promise<Batch> {
    return batchOf(
      await this.#run(this.#statements.purge_batch, [queue, JSON.stringify(filter), limit, cursor ?? null]),
    )
  }

  /** Deletes jobs that had ended by the time of the first batch. */
  async purgeHistory(queue: string, filter: JobFilter, { limit, cursor }: BatchRequest): Promise<Batch> {
    const [row] = await this.#run(this.#statements.purge_history, [
      queue,
      JSON.stringify(filter),
      cursor ?? null,
      limit,
    ])
    if (!row) throw new Error('expected one row from purge_history')
    const changed = Number(column(row, 'changed'))
    return { changed, ...(changed > 0 && { cursor: column(row, 'until') }) }
  }

  /** Moves jobs that wait to another queue. */
  async moveBatch(
    queues: { readonly from: string; readonly to: string },
    filter: JobFilter,
    { limit, cursor }: BatchRequest,
  ): Promise<Batch> {
    const values = [queues.from, queues.to, JSON.stringify(filter), limit, cursor ?? null]
    return batchOf(await this.#run(this.#statements.move_batch, values))
  }

  /** Waits for the end of a claim that is under way. */
  async awaitClaim(queue: string): Promise<void> {
    await this.#run(this.#statements.await_claim, [queue])
  }

  async occupancy(
    queue: string,
    { tenant = null, kind = null }: { readonly tenant?: string | null; readonly kind?: string | null },
  ): Promise<{ readonly running: number; readonly waiting: number }> {
    const [row] = await this.#run(this.#statements.occupancy, [queue, tenant, kind, OCCUPANCY_MAX])
    if (!row) throw new Error('expected one row from occupancy')
    return { running: Number(column(row, 'running')), waiting: Number(column(row, 'waiting')) }
  }

  async #configure<Settings>(
    statement: Statement,
    values: readonly unknown[],
    names: readonly string[],
  ): Promise<Settings> {
    const [row] = await this.#run(statement, values)
    if (!row) throw new Error(`expected one row from ${statement.name}`)
    return settingsOf<Settings>(column(row, 'settings'), names)
  }

  async #run(statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    try {
      return await this.#send(statement, values)
    } catch (error) {
      throw this.#translated(error)
    }
  }

  #send(statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    return this.#transaction((client) => textRows(client, statement.text, values))
  }

  #translated(error: unknown): unknown {
    // Our own functions refuse what only they can know, such as a setting that the queue's strategy cannot enforce.
    if (sqlStateOf(error) === '22023') return new ConfigurationError((error as Error).message, { cause: error })
    return toTenantryError(error, this.#schema, this.#hint)
  }
}

function batchOf(rows: readonly TextRow[]): Batch {
  const [row] = rows
  if (!row) throw new Error('expected one row from a batch')
  const cursor = row['cursor']
  return { changed: Number(column(row, 'changed')), ...(cursor != null && { cursor }) }
}
