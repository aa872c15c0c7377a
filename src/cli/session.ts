import pg from 'pg'
import { type Connection, connectionFrom } from './connect.js'
import { type Edge, interruptible } from './edge.js'
import { CommandError, failureOf } from './exit-codes.js'

/** Long enough for a slow network, short enough for a person who mistyped the host. */
const CONNECT_TIMEOUT_MS = 10_000

/** Lends one session of the database that the environment names. Failures say which database it was. */
export async function withSession<T>(edge: Edge, use: (session: pg.Client) => Promise<T>): Promise<T> {
  const connection = connectionFrom(edge.environment)
  const session = new pg.Client({
    ...(connection.connectionString !== undefined && { connectionString: connection.connectionString }),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'tenantry',
  })
  // A session that breaks fails the query that runs on it; the event must only not end the process.
  session.on('error', () => {})
  try {
    await interruptible(edge, connect(session, connection))
    return await interruptible(edge, use(session))
  } finally {
    // Not waited for after an interruption: a query that is still running would hold the end up.
    const ended = session.end().catch(() => {})
    if (!edge.signal.aborted) await ended
  }
}

async function connect(session: pg.Client, { description }: Connection): Promise<void> {
  try {
    await session.connect()
  } catch (error) {
    const { exitCode, message } = failureOf(error)
    throw new CommandError(exitCode, `cannot connect to ${description}: ${message}; check that address`, {
      cause: error,
    })
  }
}
