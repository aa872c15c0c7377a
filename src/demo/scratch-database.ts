import pg from 'pg'
import { EmbeddedServer } from '../embedded/server.js'
import { systemRandom } from '../random.js'
import { quoteSchema } from '../store/schema-name.js'
import { Tenantry } from '../tenantry.js'

export interface ScratchDatabase {
  readonly connectionString: string
  /** Migrated and empty. */
  readonly schema: string
}

export interface ScratchOptions {
  /** An own server; without one, a server is started in a temporary directory and removed afterwards. */
  readonly connectionString: string | undefined
  readonly signal: AbortSignal
  /** Told what is going on, for people. */
  readonly say: (what: string) => void
}

/** Lends a database with a schema of its own, and removes all of it again, however `use` ends. */
export async function withScratchDatabase<T>(
  options: ScratchOptions,
  use: (database: ScratchDatabase) => Promise<T>,
): Promise<T> {
  const schema = `tenantry_scratch_${systemRandom.uuid().slice(0, 8)}`
  const { connectionString, signal, say } = options
  if (connectionString !== undefined) {
    say(`working in the schema ${schema}, which is dropped at the end`)
    // Before `try`: a migration that fails leaves nothing behind.
    const database = await migrated({ connectionString, schema })
    try {
      return await use(database)
    } finally {
      await dropSchema({ connectionString, schema }).catch((error: unknown) => {
        // What went wrong before is the news; a schema that stays behind is only a remark.
        say(`could not drop the schema ${schema}, please drop it by hand: ${String(error)}`)
      })
    }
  }
  signal.throwIfAborted()
  say('starting PostgreSQL in a temporary directory')
  // Not cut short by the signal: only a server that has started can be removed without a trace.
  await using server = await EmbeddedServer.start()
  signal.throwIfAborted()
  return await use(await migrated({ connectionString: server.connectionString, schema }))
}

async function migrated(database: ScratchDatabase): Promise<ScratchDatabase> {
  await using tenantry = new Tenantry(database)
  await tenantry.migrate()
  return database
}

/** How long the drop waits for a session of a killed worker process that the server has not missed yet. */
const DROP_LOCK_TIMEOUT_MS = 10_000

async function dropSchema({ connectionString, schema }: ScratchDatabase): Promise<void> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(`set lock_timeout = ${DROP_LOCK_TIMEOUT_MS}`)
    await client.query(`drop schema if exists ${quoteSchema(schema)} cascade`)
  } finally {
    await client.end()
  }
}
