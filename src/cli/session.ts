import pg from 'pg'
import { Tenantry } from '../tenantry.js'
import { type Connection, connectionFrom, schemaFrom } from './connect.js'
import { explained } from './database-errors.js'
import { type Edge, interruptible } from './edge.js'

/** Long enough for a slow network, short enough for a person who mistyped the host. */
const CONNECT_TIMEOUT_MS = 10_000

/** Lends one session of the database that the environment names. Failures say which database it was. */
export async function withSession<T>(edge: Edge, use: (session: pg.Client) => Promise<T>): Promise<T> {
  const connection = connectionFrom(edge.environment)
  const session = new pg.Client({
    ...named(connection),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'tenantry',
  })
  // A session that breaks fails the query that runs on it; the event must only not end the process.
  session.on('error', () => {})
  try {
    await interruptible(edge, session.connect())
    return await interruptible(edge, use(session))
  } catch (error) {
    throw explained(error, connection)
  } finally {
    // Not waited for after an interruption: a query that is still running would hold the end up.
    const ended = session.end().catch(() => {})
    if (!edge.signal.aborted) await ended
  }
}

/** Lends a client for the database and the schema that the options and the environment name. */
export async function withTenantry<T>(
  edge: Edge,
  options: { readonly schema?: string },
  use: (tenantry: Tenantry) => Promise<T>,
): Promise<T> {
  const connection = connectionFrom(edge.environment)
  const schema = schemaFrom(options.schema, edge.environment)
  const tenantry = new Tenantry({ ...named(connection), schema })
  try {
    return await interruptible(edge, use(tenantry))
  } catch (error) {
    throw explained(error, connection)
  } finally {
    const closed = tenantry.close().catch(() => {})
    if (!edge.signal.aborted) await closed
  }
}

function named({ connectionString }: Connection) {
  return connectionString === undefined ? {} : { connectionString }
}
