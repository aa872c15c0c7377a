import { isRefusedSetting } from '../driver/pg-errors.js'
import type { SqlQuery, TextRow } from '../driver/statement.js'
import { ConfigurationError } from '../errors.js'
import type { JobFilter } from '../job/filter.js'
import type {
  Configured,
  GroupSettings,
  KeySettings,
  KindSettings,
  QueueSettings,
  SettingsChange,
  TenantSettings,
} from '../settings/settings.js'
import { Database } from './database.js'
import { column } from './rows.js'
import { settingsJson, settingsOf } from './settings-json.js'
import type { Statement, Statements } from './sql.js'
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
  readonly #database: Database
  readonly #statements: Statements

  /** `advice`: see `toTenantryError`. */
  constructor(transaction: Transaction, schema: string, advice?: string) {
    this.#database = new Database((query) => sendAlone(transaction, query), { schema, advice })
    this.#statements = this.#database.statements
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
    await this.#database.run(this.#statements.pause, [queue, JSON.stringify(scope)])
  }

  async resume(queue: string, scope: JobFilter): Promise<void> {
    await this.#database.run(this.#statements.resume, [queue, JSON.stringify(scope)])
  }

  /** Cancels jobs that wait. */
  async cancelBatch(
    queue: string,
    filter: JobFilter,
    request: BatchRequest & { readonly reason: string },
  ): Promise<Batch> {
    const { reason, limit, cursor } = request
    const values = [queue, JSON.stringify(filter), reason, limit, cursor ?? null]
    return this.#database.withHistory(async () =>
      batchOf(await this.#database.one(this.#statements.cancel_batch, values)),
    )
  }

  /** Deletes jobs that wait. */
  async purgeBatch(queue: string, filter: JobFilter, { limit, cursor }: BatchRequest): Promise<Batch> {
    return batchOf(
      await this.#database.one(this.#statements.purge_batch, [queue, JSON.stringify(filter), limit, cursor ?? null]),
    )
  }

  /** Deletes jobs that had ended by the time of the first batch. */
  async purgeHistory(queue: string, filter: JobFilter, { limit, cursor }: BatchRequest): Promise<Batch> {
    const values = [queue, JSON.stringify(filter), cursor ?? null, limit]
    const row = await this.#database.one(this.#statements.purge_history, values)
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
    return batchOf(await this.#database.one(this.#statements.move_batch, values))
  }

  /** Waits for the end of a claim that is under way. */
  async awaitClaim(queue: string): Promise<void> {
    await this.#database.run(this.#statements.await_claim, [queue])
  }

  async occupancy(
    queue: string,
    { tenant = null, kind = null }: { readonly tenant?: string | null; readonly kind?: string | null },
  ): Promise<{ readonly running: number; readonly waiting: number }> {
    const row = await this.#database.one(this.#statements.occupancy, [queue, tenant, kind, OCCUPANCY_MAX])
    return { running: Number(column(row, 'running')), waiting: Number(column(row, 'waiting')) }
  }

  async #configure<Settings>(
    statement: Statement,
    values: readonly unknown[],
    names: readonly string[],
  ): Promise<Settings> {
    const row = await this.#database.one(statement, values)
    return settingsOf<Settings>(column(row, 'settings'), names)
  }
}

/** Our own functions refuse what only they can know, such as a setting that the queue's strategy cannot enforce. */
async function sendAlone(transaction: Transaction, { text, values = [] }: SqlQuery): Promise<readonly TextRow[]> {
  try {
    return await transaction((client) => textRows(client, text, values))
  } catch (error) {
    if (isRefusedSetting(error)) throw new ConfigurationError((error as Error).message, { cause: error })
    throw error
  }
}

function batchOf(row: TextRow): Batch {
  const cursor = row['cursor']
  return { changed: Number(column(row, 'changed')), ...(cursor != null && { cursor }) }
}
