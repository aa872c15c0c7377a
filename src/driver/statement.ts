import type pg from 'pg'
import type { Logger } from '../logger.js'
import { isStalePlan, isStatementTaken, isStatementUnknown } from './pg-errors.js'

/** A statement with its values, as `$1` to `$n`. */
export interface SqlQuery {
  /** Under which the session keeps it prepared. The same name always means the same text. */
  readonly name?: string
  readonly text: string
  readonly values?: readonly unknown[]
  /** Instead of the default of the connection. */
  readonly deadlineMs?: number
}

/** A row with every column as the text that PostgreSQL sent: nothing is rounded, and no global setting changes it. */
export type TextRow = Readonly<Record<string, string | null>>

/** node-postgres's type parsers are global and the application may have replaced them, so we use none of them. */
export const AS_TEXT = { getTypeParser: () => (value: unknown) => value }

/** A reply that does not come in time means that nothing will: then the connection is not used again. */
export const QUERY_DEADLINE_MS = 15_000

/** Sends one statement. The caller may send the next before this one is answered, if the client is in pipeline mode. */
export async function send(client: pg.ClientBase, query: SqlQuery): Promise<readonly TextRow[]> {
  const config = {
    ...(query.name !== undefined && { name: query.name }),
    text: query.text,
    values: [...(query.values ?? [])],
    types: AS_TEXT as pg.CustomTypesConfig,
    query_timeout: query.deadlineMs ?? QUERY_DEADLINE_MS,
  }
  const result = await client.query<Record<string, string | null>>(config)
  return result.rows
}

export type Settled = PromiseSettledResult<readonly TextRow[]>

/**
 * Sends statements under their names, so that each is parsed and planned once per session. Behind a pooler that gives
 * every transaction another session, names are unknown or taken; then they are given up for good.
 */
export class NamedStatements {
  readonly #logger: Logger
  /** What each session has run under a name. Unknown afterwards means that the session is not the one we think. */
  readonly #proven = new WeakMap<pg.ClientBase, Set<string>>()
  /** Sessions that keep plans of an older schema: they go on without names until they end. */
  readonly #stale = new WeakSet<pg.ClientBase>()
  #enabled = true

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /**
   * Sends all at once, each a transaction of its own unless the caller sends its `begin` and `commit`. From the first on
   * whose name was refused, or from the beginning of its transaction, they are sent again, without names: so what stands
   * behind another must do no harm when it runs twice.
   */
  async exchange(client: pg.ClientBase, queries: readonly SqlQuery[]): Promise<readonly Settled[]> {
    const named = this.#enabled && !this.#stale.has(client)
    const sent = queries.map((query) => (named ? query : withoutName(query)))
    const results = await Promise.allSettled(sent.map((query) => send(client, query)))
    const refused = results.findIndex((result, index) => {
      if (result.status === 'rejected') return this.#isRefused(client, sent[index]?.name, result.reason)
      this.#prove(client, sent[index]?.name)
      return false
    })
    if (refused === -1) return results
    const from = transactionStart(queries, refused)
    const again = await Promise.allSettled(queries.slice(from).map((query) => send(client, withoutName(query))))
    return [...results.slice(0, from), ...again]
  }

  #prove(client: pg.ClientBase, name: string | undefined): void {
    if (name === undefined) return
    const names = this.#proven.get(client) ?? new Set()
    this.#proven.set(client, names.add(name))
  }

  /** Whether nothing was run, and only because of the name. */
  #isRefused(client: pg.ClientBase, name: string | undefined, error: unknown): boolean {
    if (name === undefined) return false
    if (isStalePlan(error)) {
      this.#stale.add(client)
      return true
    }
    if (isStatementUnknown(error)) {
      // Also the fate of one that was sent behind the statement which should have been prepared, but failed.
      if (this.#proven.get(client)?.has(name)) this.#giveUpNames(error)
      return true
    }
    if (isStatementTaken(error)) {
      this.#giveUpNames(error)
      return true
    }
    return false
  }

  #giveUpNames(error: unknown): void {
    if (!this.#enabled) return
    this.#enabled = false
    this.#logger.warn(
      'prepared statements do not survive between transactions here, as behind a pooler in transaction mode; going on ' +
        'without them, which costs some CPU in the server for each statement',
      { error: error instanceof Error ? error.message : String(error) },
    )
  }
}

/** Where the transaction begins that the query at `index` is in: at itself, unless an explicit `begin` stands before it. */
function transactionStart(queries: readonly SqlQuery[], index: number): number {
  for (let at = index; at >= 0; at--) {
    const text = queries[at]?.text ?? ''
    if (/^begin\b/i.test(text)) return at
    if (/^commit\b/i.test(text)) return index
  }
  return index
}

function withoutName({ text, values, deadlineMs }: SqlQuery): SqlQuery {
  return { text, ...(values !== undefined && { values }), ...(deadlineMs !== undefined && { deadlineMs }) }
}
