import pg from 'pg'
import { delay } from '../clock.js'
import { TenantryError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import { clientConfig, destroyClient } from './client.js'
import { leavesSessionUsable } from './pg-errors.js'
import { NamedStatements, QUERY_DEADLINE_MS, type SqlQuery, send, type TextRow } from './statement.js'

/** Enough for enqueues and for handlers that settle in a transaction; the hot path has a connection of its own. */
export const POOL_SIZE_DEFAULT = 10

/** How long what is under way may take at the end. A handler's transaction that outlives its worker may take for ever. */
const END_WAIT_MS = 5_000

export interface DatabasePoolOptions {
  /** Connections of our own, made with this. Either `client` or `pool`. */
  readonly client?: pg.ClientConfig
  /** The application's pool, which we use and never end. */
  readonly pool?: pg.Pool
  /** Connections at most, of our own. Default 10. */
  readonly max?: number
  readonly logger?: Logger
  /** For the reply to one query. Default 15 s. Transactions are not bounded: what is in them belongs to the caller. */
  readonly queryDeadlineMs?: number
  /** How long `end` waits for connections that are in use. Default 5 s. */
  readonly endWaitMs?: number
}

/** Connections for what may take its time or is the caller's own: enqueues, handlers' transactions, inspection. */
export class DatabasePool {
  readonly #pool: pg.Pool
  readonly #isOurs: boolean
  readonly #statements: NamedStatements
  readonly #logger: Logger
  readonly #deadlineMs: number
  readonly #endWaitMs: number
  /** Clients that are in use. */
  readonly #borrowed = new Set<pg.PoolClient>()
  readonly #onIdleError = (error: Error) =>
    this.#logger.debug('an idle connection of the pool was lost', { error: error.message })
  #ended: Promise<void> | undefined

  constructor(options: DatabasePoolOptions) {
    this.#logger = options.logger ?? silentLogger
    this.#deadlineMs = options.queryDeadlineMs ?? QUERY_DEADLINE_MS
    this.#endWaitMs = options.endWaitMs ?? END_WAIT_MS
    this.#statements = new NamedStatements(this.#logger)
    this.#isOurs = options.pool === undefined
    this.#pool = options.pool ?? createPool(options)
    // Without a listener the loss of an idle connection would end the process.
    this.#pool.on('error', this.#onIdleError)
  }

  /** One statement, a transaction of its own. */
  async query(query: SqlQuery): Promise<readonly TextRow[]> {
    return this.#borrow(async (client) => {
      const [result] = await this.#statements.exchange(client, [{ deadlineMs: this.#deadlineMs, ...query }])
      if (result?.status === 'fulfilled') return result.value
      throw result?.reason
    }, leavesSessionUsable)
  }

  /**
   * Runs the function in a transaction at READ COMMITTED, whatever the role's default, and commits when it resolves. The
   * client is node-postgres's own, with the application's type parsers: it may be handed to any query builder.
   */
  async transaction<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let begun = false
    const isUsable = (error: unknown) => begun || leavesSessionUsable(error)
    return this.#borrow(async (client) => {
      await send(client, { text: 'begin isolation level read committed', deadlineMs: this.#deadlineMs })
      begun = true
      const result = await this.#rollBackUnless(client, () => run(client))
      await this.#commit(client)
      return result
    }, isUsable)
  }

  /** One session for several statements, such as a migration that opens and ends its own transactions. */
  async session<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#borrow(run, leavesSessionUsable)
  }

  /**
   * Waits for what is under way, then closes the connections that are still in use: what runs on them is rejected and
   * rolled back. Always resolves. The application's pool is left open.
   */
  async end(): Promise<void> {
    this.#ended ??= this.#isOurs ? this.#endOurs() : Promise.resolve()
    await this.#ended
    // Connections of ours that are still closing may break, and need the listener to the last.
    if (!this.#isOurs) this.#pool.removeListener('error', this.#onIdleError)
  }

  async #endOurs(): Promise<void> {
    const waited = new AbortController()
    const closed = this.#pool.end().finally(() => waited.abort())
    await Promise.race([closed, delay(this.#endWaitMs, waited.signal)])
    // node-postgres's end() waits for these for as long as they are in use, so we do not wait for it any more.
    for (const client of this.#borrowed) destroyClient(client)
  }

  async #borrow<T>(run: (client: pg.PoolClient) => Promise<T>, isUsable: (error: unknown) => boolean): Promise<T> {
    const client = await this.#checkOut()
    let usable = true
    // The pool's own listener is off while the client is out.
    const onError = () => {
      usable = false
    }
    client.on('error', onError)
    this.#borrowed.add(client)
    try {
      return await run(client)
    } catch (error) {
      usable &&= isUsable(error)
      throw error
    } finally {
      this.#borrowed.delete(client)
      client.removeListener('error', onError)
      client.release(!usable || isInTransaction(client))
    }
  }

  /** An application may have given back a client with its transaction still open; ours must not end up inside it. */
  async #checkOut(): Promise<pg.PoolClient> {
    if (this.#ended) throw new TenantryError('QUERY_FAILED', 'the connections were closed; do not use it after close()')
    for (;;) {
      const client = await this.#pool.connect()
      if (!isInTransaction(client)) return client
      this.#logger.warn('a pooled connection was given back with its transaction still open; it is closed', {})
      client.release(true)
    }
  }

  async #rollBackUnless<T>(client: pg.PoolClient, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      // When this fails too, the client is still in a transaction as far as we know, and is not used again.
      await send(client, { text: 'rollback', deadlineMs: this.#deadlineMs }).catch(() => {})
      throw error
    }
  }

  /** PostgreSQL answers COMMIT of a transaction in which a statement failed with ROLLBACK, and no error. */
  async #commit(client: pg.PoolClient): Promise<void> {
    const config = { text: 'commit', query_timeout: this.#deadlineMs }
    const { command } = await client.query(config)
    if (command === 'COMMIT') return
    throw new TenantryError(
      'QUERY_FAILED',
      'the transaction was rolled back, because a statement in it had failed; let its error reach the end of the transaction, or use a savepoint',
    )
  }
}

function createPool({ client, max = POOL_SIZE_DEFAULT }: DatabasePoolOptions): pg.Pool {
  // A script that only enqueues shall end without being told that it is over.
  return new pg.Pool({ ...clientConfig(client ?? {}), max, allowExitOnIdle: true })
}

/** Older node-postgres, which an application's pool may be of, does not tell. */
function isInTransaction(client: pg.PoolClient): boolean {
  const status = (client as Partial<Pick<pg.PoolClient, 'getTransactionStatus'>>).getTransactionStatus?.()
  return status === 'T' || status === 'E'
}
