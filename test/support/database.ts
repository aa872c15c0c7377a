import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { migrate } from '../../src/store/migrate.js'

export interface SchemaOptions {
  /** Of another server than that of all tests. */
  readonly connectionString?: string
  /** Any name; random by default. */
  readonly schema?: string
  /** False leaves the schema uncreated, for tests of the migrations themselves. */
  readonly migrated?: boolean
  /** True creates the schema and puts nothing into it, for tests that only need a place for a table of their own. */
  readonly empty?: boolean
}

/** A schema of its own on the test server. Dropped when its test has passed, kept for a look when it has failed. */
export interface TestSchema {
  readonly schema: string
  /** The schema's name as it stands in SQL. */
  readonly quoted: string
  readonly connectionString: string
  readonly pool: pg.Pool
  /** Rows as node-postgres parses them by default. */
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** Another session, ended with the schema. */
  connect(config?: pg.ClientConfig): Promise<pg.Client>
  /** Ends the connections and drops the schema. Called at the end of the test in which the schema was created. */
  drop(): Promise<void>
}

/** Call it inside a test or in `beforeEach`. In `beforeAll` use `createSharedSchema` and drop it in `afterAll`. */
export async function createSchema(options: SchemaOptions = {}): Promise<TestSchema> {
  const created = await createSharedSchema(options)
  onTestFinished(async ({ task }) => {
    await (task.result?.state === 'fail' ? created.end() : created.drop())
  })
  return created
}

export async function createSharedSchema(options: SchemaOptions = {}): Promise<TestSchema & { end(): Promise<void> }> {
  const connectionString = options.connectionString ?? inject('databaseUrl')
  const schema = options.schema ?? `test_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const quoted = pg.escapeIdentifier(schema)
  const pool = new pg.Pool({ connectionString, max: 4 })
  pool.on('error', () => {})
  const clients: pg.Client[] = []
  const end = async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})))
    await pool.end()
  }
  const connect = async (config: pg.ClientConfig = {}) => {
    const client = new pg.Client({ connectionString, ...config })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }
  if (options.empty) await pool.query(`create schema ${quoted}`)
  else if (options.migrated !== false) await migrateOnce(connectionString, schema)
  return {
    schema,
    quoted,
    connectionString,
    pool,
    end,
    connect,
    query: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await pool.query(text, [...values])).rows as Row[],
    drop: async () => {
      await end()
      await dropSchema(connectionString, quoted)
    },
  }
}

async function migrateOnce(connectionString: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await migrate(client, { schema })
  } finally {
    await client.end()
  }
}

async function dropSchema(connectionString: string, quoted: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    // Shorter than the hook's own limit, so that a test which left a transaction open is told so.
    await client.query("set lock_timeout = '20s'")
    for (let attempt = 1; ; attempt += 1) {
      try {
        await client.query(`drop schema if exists ${quoted} cascade`)
        return
      } catch (error) {
        // The statement of a process that is being killed, which takes the tables in another order.
        if (attempt === 5 || (error as { code?: string }).code !== '40P01') throw error
      }
    }
  } finally {
    await client.end()
  }
}
