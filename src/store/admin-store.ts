import { sqlStateOf, toTenantryError } from '../driver/pg-errors.js'
import type { TextRow } from '../driver/statement.js'
import { ConfigurationError } from '../errors.js'
import type {
  Configured,
  GroupSettings,
  KeySettings,
  KindSettings,
  QueueSettings,
  Scope,
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
  async pause(queue: string, scope: Scope): Promise<void> {
    await this.#run(this.#statements.pause, [queue, JSON.stringify(scope)])
  }

  async resume(queue: string, scope: Scope): Promise<void> {
    await this.#run(this.#statements.resume, [queue, JSON.stringify(scope)])
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
      return await this.#transaction((client) => textRows(client, statement.text, values))
    } catch (error) {
      throw this.#translated(error)
    }
  }

  #translated(error: unknown): unknown {
    // Our own functions refuse what only they can know, such as a setting that the queue's strategy cannot enforce.
    if (sqlStateOf(error) === '22023') return new ConfigurationError((error as Error).message, { cause: error })
    return toTenantryError(error, this.#schema, this.#hint)
  }
}
