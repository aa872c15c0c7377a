import pg from 'pg'
import { delay } from '../clock.js'
import { type Logger, silentLogger } from '../logger.js'
import { jittered, type Random } from '../random.js'
import { backOffMs, type Service } from '../service.js'
import { createClient, destroyClient, endClient } from './client.js'
import { send } from './statement.js'

/** With the deadline of the reply this makes 8 s at most until a dead connection is noticed. */
const HEARTBEAT_MS = 5_000
const REPLY_DEADLINE_MS = 2_500
const CONNECT_TIMEOUT_MS = 5_000

const BACK_OFF = { minMs: 100, maxMs: 2_000 }

export interface NotificationOptions {
  readonly client: pg.ClientConfig
  readonly channel: string
  readonly onNotification: (payload: string) => void
  /** After each (re)connect, when the session listens: what was sent meanwhile is lost, so look for yourself. */
  readonly onConnected: () => void
  readonly random: Random
  readonly logger?: Logger
  readonly heartbeatMs?: number
}

/**
 * The connection that listens for notifications, and nothing else. A connection can be dead without any error (a
 * failover, a firewall that forgot it), so it is asked every few seconds, in its own session, whether it still listens.
 */
export class NotificationConnection implements Service {
  readonly #options: NotificationOptions
  readonly #logger: Logger
  #stop: AbortController | undefined
  #loop: Promise<void> | undefined
  #isListening = false
  /** Sessions in a row that did not live until their first heartbeat. */
  #failures = 0
  #poolerReported = false

  constructor(options: NotificationOptions) {
    this.#options = options
    this.#logger = options.logger ?? silentLogger
  }

  /** Whether notifications arrive, as far as we know. False behind a pooler, where some may. */
  get isListening(): boolean {
    return this.#isListening
  }

  /** Does not wait for the connection: `onConnected` tells. */
  async start(): Promise<void> {
    if (this.#loop) return
    this.#stop = new AbortController()
    this.#loop = this.#listenUntil(this.#stop.signal)
  }

  async stop(): Promise<void> {
    this.#stop?.abort()
    await this.#loop
    this.#loop = undefined
  }

  async #listenUntil(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        await this.#listen(stop)
      } catch (error) {
        this.#failures += 1
        this.#reportFailure(error)
      }
      await delay(jittered(backOffMs(this.#failures, BACK_OFF), this.#options.random), stop)
    }
  }

  /** One session, from connecting to its end. Rejects unless it was stopped. */
  async #listen(stop: AbortSignal): Promise<void> {
    const client = createClient({ ...this.#options.client, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
    const over = new AbortController()
    client.on('error', (error) => over.abort(error))
    client.on('end', () => over.abort(new Error('the connection was closed')))
    client.on('notification', ({ channel, payload }) => {
      if (channel === this.#options.channel) this.#options.onNotification(payload ?? '')
    })
    let connected = false
    const onStop = () => {
      over.abort()
      // Whoever is still connecting cannot say farewell.
      if (!connected) destroyClient(client)
    }
    stop.addEventListener('abort', onStop, { once: true })
    try {
      await client.connect()
      await send(client, {
        text: `listen ${pg.escapeIdentifier(this.#options.channel)}`,
        deadlineMs: REPLY_DEADLINE_MS,
      })
      this.#isListening = await this.#isDirect(client)
      connected = true
      this.#options.onConnected()
      await this.#beatUntil(over.signal, client)
      throw over.signal.reason
    } catch (error) {
      if (!stop.aborted) throw error
    } finally {
      stop.removeEventListener('abort', onStop)
      this.#isListening = false
      await endClient(client)
    }
  }

  /**
   * Whether the server's process is the one that greeted us. A pooler greets with numbers of its own. In transaction mode
   * it loses notifications, while each heartbeat may well meet the very session that listens.
   */
  async #isDirect(client: pg.Client): Promise<boolean> {
    const rows = await send(client, {
      text: 'select pg_catalog.pg_backend_pid() as pid',
      deadlineMs: REPLY_DEADLINE_MS,
    })
    // node-postgres keeps it, its types leave it out.
    const { processID } = client as unknown as { readonly processID: number }
    const isDirect = rows.some(({ pid }) => pid === String(processID))
    if (!isDirect && !this.#poolerReported) {
      this.#poolerReported = true
      this.#logger.warn(
        'notifications cannot be relied on through a pooler; jobs are found by polling. For faster pick-up give a ' +
          'connection string for notifications that leads to PostgreSQL itself',
        { channel: this.#options.channel },
      )
    }
    return isDirect
  }

  async #beatUntil(over: AbortSignal, client: pg.Client): Promise<void> {
    const intervalMs = this.#options.heartbeatMs ?? HEARTBEAT_MS
    for (;;) {
      await delay(jittered(intervalMs * 0.95, this.#options.random, 0.05), over)
      if (over.aborted) return
      await this.#beat(client)
    }
  }

  async #beat(client: pg.Client): Promise<void> {
    const rows = await send(client, {
      text: 'select from pg_catalog.pg_listening_channels() as listening (channel) where channel = $1::text',
      values: [this.#options.channel],
      deadlineMs: REPLY_DEADLINE_MS,
    })
    if (rows.length === 0) {
      throw new Error(
        'the session does not listen any more; behind a pooler, give a direct connection for notifications',
      )
    }
    if (this.#failures > 0) this.#logger.info('notifications are back', { channel: this.#options.channel })
    this.#failures = 0
  }

  #reportFailure(error: unknown): void {
    const fields = { channel: this.#options.channel, error: error instanceof Error ? error.message : String(error) }
    const message = 'notifications are interrupted; jobs are found by polling meanwhile'
    // Once for each interruption, however many attempts it takes.
    if (this.#failures === 1) this.#logger.warn(message, fields)
    else this.#logger.debug(message, fields)
  }
}
