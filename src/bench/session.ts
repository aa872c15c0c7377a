import type pg from 'pg'
import { createClient, endClient } from '../driver/client.js'
import { migrate } from '../store/migrate.js'
import { quoteSchema } from '../store/schema-name.js'
import { type BenchQuery, benchQuery } from './queries.js'

export type BenchRow = Readonly<Record<string, string | null>>

export interface RunOptions {
  readonly schema?: string
  readonly values?: readonly unknown[]
}

/** The session that prepares and measures. Jobs are claimed and settled by others. */
export class BenchSession implements AsyncDisposable {
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async open(connectionString: string): Promise<BenchSession> {
    const client = createClient({ connectionString })
    await client.connect()
    return new BenchSession(client)
  }

  /** Runs what one block of `sql/bench` says. Without values that may be several statements, or one such as VACUUM. */
  async run(name: BenchQuery, { schema, values }: RunOptions = {}): Promise<readonly BenchRow[]> {
    const text = benchQuery(name, schema === undefined ? {} : { schema })
    const { rows } = await (values
      ? this.#client.query<BenchRow>(text, [...values])
      : this.#client.query<BenchRow>(text))
    return rows
  }

  /** The number in a column of the only row. */
  async number(name: BenchQuery, column: string, options?: RunOptions): Promise<number> {
    const [row] = await this.run(name, options)
    return Number(row?.[column])
  }

  /** VACUUM of tables whose names are quoted. No function can run it. */
  async vacuum(tables: readonly string[], { analyze }: { readonly analyze: boolean }): Promise<void> {
    await this.#client.query(`vacuum (analyze ${analyze}) ${tables.join(', ')}`)
  }

  /** Creates a schema of Tenantry's. */
  async migrate(schema: string): Promise<void> {
    await migrate(this.#client, { schema })
  }

  async drop(schema: string): Promise<void> {
    await this.#client.query(`drop schema if exists ${quoteSchema(schema)} cascade`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endClient(this.#client)
  }
}
