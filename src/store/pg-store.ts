import { isIsolationRefusal, isSerializationFailure } from '../driver/pg-errors.js'
import type { Settled, SqlQuery, TextRow } from '../driver/statement.js'
import type { Job, JobRecord, JobState, NewJob } from '../job/job.js'
import { HISTORY_DAYS_AHEAD, RECLAIM_LEASES_MAX } from '../limits.js'
import type { Settlement } from '../settle/outcome.js'
import { Database } from './database.js'
import { enqueueBatches, enqueueValues } from './enqueue-values.js'
import { interleave } from './interleave.js'
import { quotaExceeded } from './quota-exceeded.js'
import { column, optionalNumber, time, toJob } from './rows.js'
import { finalizeValues, requeueValues, sortOutcomes } from './settlement-values.js'
import type { Statement, Statements } from './sql.js'
import type { Claim, ClaimRequest, Queryable, Reclaimed, Store } from './store.js'
import { textRows } from './text-rows.js'

/** What the store needs of a connection or a pool. */
export interface Session {
  query(query: SqlQuery): Promise<readonly TextRow[]>
  /** Sends all without waiting in between; only claims need it. */
  pipeline?(queries: readonly SqlQuery[]): Promise<readonly Settled[]>
  /** Runs several statements in one transaction; only enqueues of more than one statement need it. */
  transaction?<Result>(run: (client: Queryable) => Promise<Result>): Promise<Result>
}

/** How long finished jobs are kept: long enough to look into last week's trouble, and discarded ones to repair it. */
const SETTLED_DAYS = 7
const DISCARDED_DAYS = 30

/** Idle lanes forgotten in one call. */
const PRUNE_LANES = 1_000

/** The queue on PostgreSQL: statement, parameters, rows. What it decides is in the SQL. */
export class PgStore implements Store {
  readonly #session: Session
  readonly #database: Database
  readonly #statements: Statements
  /** Set when the role's default isolation level turned out to be another one. */
  #setsIsolation = false

  /** `advice`: see `toTenantryError`. */
  constructor(session: Session, schema: string, advice?: string) {
    this.#session = session
    this.#database = new Database((query) => this.#send(query), { schema, advice })
    this.#statements = this.#database.statements
  }

  async enqueue(jobs: readonly NewJob[], transaction?: Queryable): Promise<string[]> {
    if (jobs.length === 0) return []
    try {
      return await (transaction ? this.#enqueueIn(jobs, transaction) : this.#enqueue(jobs))
    } catch (error) {
      throw quotaExceeded(error) ?? error
    }
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const { queue, leaseId, workerId, kinds, count, leaseMs, listening } = request
    const claim = this.#query(this.#statements.claim, [queue, leaseId, workerId, kinds, count, leaseMs, listening])
    const read = this.#query(this.#statements.claimed, [leaseId])
    const [claimed, jobs] = await (request.likelyEmpty
      ? this.#claimThenRead(claim, read)
      : this.#exchangeClaim(claim, read))
    const head = claimed[0]
    if (!head) throw new Error('expected one row from claim')
    const found = jobs.map(toJob)
    const nextDueMs = optionalNumber(head, 'next_due_ms')
    return {
      jobs: column(head, 'interleave') === 't' ? interleave(found) : found,
      ...(column(head, 'held_back') === 't' && { heldBack: true }),
      ...(nextDueMs !== undefined && { nextDueMs }),
    }
  }

  async claimed(leaseId: string): Promise<readonly Job[]> {
    const rows = await this.#database.run(this.#statements.claimed, [leaseId])
    return rows.map(toJob)
  }

  async extend(leaseIds: readonly string[], leaseMs: number): Promise<ReadonlySet<string>> {
    if (leaseIds.length === 0) return new Set()
    return ids(await this.#database.run(this.#statements.extend, [leaseIds, leaseMs]))
  }

  async settle(
    queue: string,
    settlements: readonly Settlement[],
    finishedLeases: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const { completed, requeued, finalized } = sortOutcomes(settlements)
    const accepted = new Set(settlements.map(({ jobId }) => jobId))
    const none: readonly string[] = []
    // The last statement removes the rows of finished leases, whichever it is.
    const runs: { readonly statement: Statement; readonly values: unknown[] }[] = []
    if (finalized.length > 0) {
      runs.push({ statement: this.#statements.finalize, values: [queue, ...finalizeValues(finalized)] })
    }
    if (requeued.length > 0) {
      runs.push({ statement: this.#statements.requeue, values: [queue, ...requeueValues(requeued)] })
    }
    if (completed.length > 0 || (runs.length === 0 && finishedLeases.length > 0)) {
      const values = [queue, completed.map(({ jobId }) => jobId), completed.map(({ leaseId }) => leaseId)]
      runs.push({ statement: this.#statements.complete, values })
    }
    for (const [index, { statement, values }] of runs.entries()) {
      const leases = index === runs.length - 1 ? finishedLeases : none
      for (const lost of lostIds(await this.#runWithHistory(statement, [...values, leases]))) accepted.delete(lost)
    }
    return accepted
  }

  async completeIn(transaction: Queryable, queue: string, jobId: string, leaseId: string): Promise<boolean> {
    const rows = await this.#runIn(transaction, this.#statements.complete, [queue, [jobId], [leaseId], []])
    return lostIds(rows).length === 0
  }

  async reclaim(): Promise<Reclaimed> {
    const database = this.#database
    const row = await database.withHistory(() => database.one(this.#statements.reclaim, [RECLAIM_LEASES_MAX]))
    const nextDueMs = optionalNumber(row, 'next_due_ms')
    return {
      leases: Number(column(row, 'leases')),
      retried: Number(column(row, 'retried')),
      discarded: Number(column(row, 'discarded')),
      ...(nextDueMs !== undefined && { nextDueMs }),
    }
  }

  async maintain(): Promise<void> {
    await this.#database.run(this.#statements.ensure_history, [HISTORY_DAYS_AHEAD])
    await this.#database.run(this.#statements.heal_leases, [])
    await this.#database.prune(async () => {
      const row = await this.#database.one(this.#statements.prune_history, [SETTLED_DAYS, DISCARDED_DAYS])
      return row['dropped'] != null
    })
    await this.#database.prune(async () => {
      const row = await this.#database.one(this.#statements.prune_ring, [PRUNE_LANES])
      return Number(column(row, 'forgotten')) >= PRUNE_LANES
    })
  }

  async job(id: string): Promise<JobRecord | undefined> {
    const [row] = await this.#database.run(this.#statements.job, [id])
    if (!row) return undefined
    const finalized = row['finalized_at_seconds'] != null
    return {
      ...toJob(row),
      state: column(row, 'state') as JobState,
      ...(finalized && { finalizedAt: time(row, 'finalized_at_seconds') }),
    }
  }

  /** Cancels a job that waits; false when it runs already, is finished or does not exist. */
  async cancel(id: string, reason: string): Promise<boolean> {
    const [row] = await this.#runWithHistory(this.#statements.cancel, [id, reason])
    return row?.['cancelled'] === 't'
  }

  /** The channel on which workers of this schema are notified. */
  async channel(): Promise<string> {
    return column(await this.#database.one(this.#statements.channel, []), 'channel')
  }

  #runWithHistory(statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    return this.#database.withHistory(() => this.#database.run(statement, values))
  }

  async #enqueue(jobs: readonly NewJob[]): Promise<string[]> {
    const [only, ...others] = enqueueBatches(jobs)
    if (only && others.length === 0) {
      const rows = await this.#database.run(this.#statements.enqueue_many, enqueueValues(only))
      return rows.map((row) => column(row, 'id'))
    }
    if (!this.#session.transaction) throw new Error('broken invariant: large enqueues go through the pool')
    return this.#session.transaction((client) => this.#enqueueIn(jobs, client))
  }

  async #enqueueIn(jobs: readonly NewJob[], transaction: Queryable): Promise<string[]> {
    const all: string[] = []
    for (const batch of enqueueBatches(jobs)) {
      const rows = await this.#runIn(transaction, this.#statements.enqueue_many, enqueueValues(batch))
      for (const row of rows) all.push(column(row, 'id'))
    }
    return all
  }

  /** Claims, and reads only if there is something to read: one statement where nothing is expected, two round trips otherwise. */
  async #claimThenRead(claim: SqlQuery, read: SqlQuery): Promise<[readonly TextRow[], readonly TextRow[]]> {
    try {
      const rows = await this.#send(claim)
      const isEmpty = rows[0] !== undefined && column(rows[0], 'claimed') === '0'
      return [rows, isEmpty ? [] : await this.#send(read)]
    } catch (error) {
      throw this.#database.translated(error)
    }
  }

  /** Claims and reads in one round trip, and once more in explicit transactions if the role's default level is another. */
  async #exchangeClaim(claim: SqlQuery, read: SqlQuery): Promise<[readonly TextRow[], readonly TextRow[]]> {
    if (!this.#session.pipeline) throw new Error('broken invariant: a claim needs a pipelined connection')
    const isExplicit = this.#setsIsolation
    const results = await this.#session.pipeline(
      isExplicit ? [...readCommitted(claim), ...readCommitted(read)] : [claim, read],
    )
    const failed = results.find((result) => result.status === 'rejected')
    if (failed?.status === 'rejected') {
      if (isExplicit || !isIsolationRefusal(failed.reason)) throw this.#database.translated(failed.reason)
      this.#setsIsolation = true
      return this.#exchangeClaim(claim, read)
    }
    const rows = results.map((result) => (result.status === 'fulfilled' ? result.value : []))
    return isExplicit ? [rows[1] ?? [], rows[4] ?? []] : [rows[0] ?? [], rows[1] ?? []]
  }

  #query(statement: Statement, values: readonly unknown[]): SqlQuery {
    return { name: statement.name, text: statement.text, values }
  }

  /** A serialization failure says that the role's default level is another: at READ COMMITTED there are none. */
  async #send(query: SqlQuery): Promise<readonly TextRow[]> {
    const isExplicit = this.#setsIsolation
    try {
      return await (isExplicit ? this.#sendReadCommitted(query) : this.#session.query(query))
    } catch (error) {
      if (isExplicit || !isSerializationFailure(error)) throw error
      this.#setsIsolation = true
      return this.#send(query)
    }
  }

  async #sendReadCommitted(query: SqlQuery): Promise<readonly TextRow[]> {
    const session = this.#session
    if (session.pipeline) return answerOf(await session.pipeline(readCommitted(query)))
    if (!session.transaction) throw new Error('broken invariant: a session has pipelines or transactions')
    return session.transaction((client) => textRows(client, query.text, query.values ?? []))
  }

  /** In somebody else's transaction: without a name, which their session may not keep, and with their errors left alone. */
  #runIn(transaction: Queryable, statement: Statement, values: readonly unknown[]): Promise<readonly TextRow[]> {
    return textRows(transaction, statement.text, values)
  }
}

/** A query in a transaction at the isolation level that claims refuse to run without. */
function readCommitted(query: SqlQuery): readonly [SqlQuery, SqlQuery, SqlQuery] {
  return [{ text: 'begin isolation level read committed' }, query, { text: 'commit' }]
}

/** The answer in the middle of a transaction, unless any of its statements failed. */
function answerOf(results: readonly Settled[]): readonly TextRow[] {
  const failed = results.find((result) => result.status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  const [, answer] = results
  return answer?.status === 'fulfilled' ? answer.value : []
}

/** Reads `{1,2}`. An answer without a row is an error, so that silence is never taken for success. */
function lostIds(rows: readonly TextRow[]): readonly string[] {
  const [row] = rows
  if (!row) throw new Error('expected one row from a settling statement')
  const text = column(row, 'lost')
  return text === '{}' ? [] : text.slice(1, -1).split(',')
}

function ids(rows: readonly TextRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => column(row, 'id')))
}
