import pg from 'pg'

/** Longer than any server needs that is there at all, and short enough to try another time. */
export const CONNECT_TIMEOUT_MS = 10_000

/** How long a farewell may take before the socket is simply closed. */
const FAREWELL_MS = 1_000

/**
 * How we connect. No start-up parameters beyond the name: PgBouncer refuses those which it does not know, such as
 * statement_timeout, so the statements bound themselves.
 */
export function clientConfig(config: pg.ClientConfig): pg.ClientConfig {
  return {
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    fallback_application_name: 'tenantry',
    ...config,
  }
}

/** A client whose connection may break at any time without an 'error' event that ends the process. */
export function createClient(config: pg.ClientConfig): pg.Client {
  const client = new pg.Client(clientConfig(config))
  client.on('error', () => {})
  return client
}

/** Ends a connection in whatever state it is, in bounded time. */
export async function endClient(client: pg.Client): Promise<void> {
  const timer = setTimeout(() => destroyClient(client), FAREWELL_MS)
  try {
    await client.end()
  } catch {
    // It is gone, which is what we wanted.
  } finally {
    clearTimeout(timer)
  }
}

/** Closes the socket. What was sent and not answered is rejected; whether it ran is unknown. */
export function destroyClient(client: Pick<pg.Client, 'connection'>): void {
  client.connection.stream.destroy()
}
