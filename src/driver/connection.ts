import type pg from 'pg'
import { TenantryError } from '../errors.js'
import { type Logger, silentLogger } from '../logger.js'
import type { Service } from '../service.js'
import { createClient, endClient } from './client.js'
import { leavesSessionUsable } from './pg-errors.js'
import { NamedStatements, QUERY_DEADLINE_MS, type Settled, type SqlQuery, type TextRow } from './statement.js'

export interface ConnectionOptions {
  /** node-postgres's: `connectionString`, or `host` and so on. */
  readonly client: pg.ClientConfig
  readonly logger?: Logger
  /** For a reply, counted from the call. Default 15 s. */
  readonly queryDeadlineMs?: number
}

/**
 * One connection of our own for the statements of the hot path, which are sent without waiting for the replies of those
 * before them. It connects when it is first used, and again at the first use after it was lost. What was under way then
 * is rejected: only the caller knows whether it may be sent twice.
 */
export class Connection implements Service {
  readonly #options: ConnectionOptions
  readonly #statements: NamedStatements
  readonly #deadlineMs: number
  #session: Session | undefined
  /** Exchanges under way, so that `stop` can wait for their replies. */
  readonly #pending = new Set<Promise<unknown>>()
  #stopped = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#statements = new NamedStatements(options.logger ?? silentLogger)
    this.#deadlineMs = options.queryDeadlineMs ?? QUERY_DEADLINE_MS
  }

  /** Connects now rather than at the first query; rejects when the server cannot be reached. */
  async start(): Promise<void> {
    this.#stopped = false
    await this.#connected()
  }

  /** Waits for the replies that are still to come, each at most for its deadline, and closes the connection. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled(this.#pending)
    const session = this.#session
    this.#session = undefined
    if (session) await endClient(session.client)
  }

  async query(query: SqlQuery): Promise<readonly TextRow[]> {
    const [result] = await this.pipeline([query])
    if (result?.status === 'fulfilled') return result.value
    throw result?.reason
  }

  /**
   * Sends all at once, each a transaction of its own, and answers with the result or the error of each. One that stands
   * behind another must do no harm when it runs twice, see `NamedStatements`.
   */
  async pipeline(queries: readonly SqlQuery[]): Promise<readonly Settled[]> {
    const exchange = this.#exchange(queries)
    this.#pending.add(exchange)
    try {
      return await exchange
    } finally {
      this.#pending.delete(exchange)
    }
  }

  async #exchange(queries: readonly SqlQuery[]): Promise<readonly Settled[]> {
    const bounded = queries.map((query) => ({ deadlineMs: this.#deadlineMs, ...query }))
    let client: pg.Client
    try {
      client = await this.#connected()
    } catch (reason) {
      return queries.map(() => ({ status: 'rejected', reason }))
    }
    const results = await this.#statements.exchange(client, bounded)
    if (results.some((result) => result.status === 'rejected' && !leavesSessionUsable(result.reason)))
      this.#retire(client)
    return results
  }

  #connected(): Promise<pg.Client> {
    if (this.#stopped)
      return Promise.reject(new TenantryError('QUERY_FAILED', 'the connection was stopped; start it again'))
    this.#session ??= this.#connect()
    return this.#session.ready
  }

  #connect(): Session {
    const client = createClient({ ...this.#options.client, pipeline: true })
    client.on('error', () => this.#forget(client))
    client.on('end', () => this.#forget(client))
    const ready = client.connect().then(() => client)
    ready.catch(() => this.#forget(client))
    return { client, ready }
  }

  #forget(client: pg.Client): void {
    if (this.#session?.client === client) this.#session = undefined
  }

  /** The next query gets a new session; those under way on this one are answered first. */
  #retire(client: pg.Client): void {
    this.#forget(client)
    client.end().catch(() => {})
  }
}

interface Session {
  readonly client: pg.Client
  readonly ready: Promise<pg.Client>
}
