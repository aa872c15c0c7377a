import { TenantryError } from '../errors.js'

/**
 * What a failed statement means for the next try. `retryable`: the same again may well succeed soon. `unreachable`: the
 * server cannot be talked to; back off, and say so. `fatal`: the same again fails the same way.
 */
export type Verdict = 'retryable' | 'unreachable' | 'fatal'

const VERDICTS: Readonly<Record<string, Verdict>> = {
  // PostgreSQL
  '0A000': 'fatal', // but see isStalePlan
  '25006': 'retryable', // read-only: the primary became a standby; another connection finds the new primary
  '25P03': 'retryable', // idle_in_transaction_session_timeout: the process was paused inside a transaction
  '25P04': 'retryable', // transaction_timeout, of the role or the database
  '26000': 'retryable', // the prepared statement is gone: a pooler gave us another session
  '40001': 'retryable', // serialization failure: somebody else was faster
  '40P01': 'retryable', // deadlock: somebody else was let through
  '42P05': 'retryable', // the prepared statement exists: a pooler gave us another session
  '53100': 'retryable', // disk full: an operator makes room while we back off
  '53200': 'retryable', // out of memory, of the server's, for now
  '53300': 'unreachable', // too many connections
  '55P03': 'retryable', // lock_timeout: the table or row is in use for now
  '57014': 'retryable', // statement_timeout, or cancelled by an operator
  '57P01': 'unreachable', // shutdown, or this session was terminated
  '57P02': 'unreachable', // the server crashed
  '57P03': 'unreachable', // the server is starting
  '57P05': 'unreachable', // idle_session_timeout: the session is gone, the next one is fine
  // Node: the network between us and the server
  EADDRNOTAVAIL: 'unreachable',
  EAI_AGAIN: 'unreachable',
  ECONNABORTED: 'unreachable',
  ECONNREFUSED: 'unreachable',
  ECONNRESET: 'unreachable',
  EHOSTDOWN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENOENT: 'unreachable', // the Unix socket of a server that does not run
  ENOTFOUND: 'unreachable',
  EPIPE: 'unreachable',
  ETIMEDOUT: 'unreachable',
}

/** node-postgres throws these without a code. */
const MESSAGES: Readonly<Record<string, Verdict>> = {
  'Client has encountered a connection error and is not queryable': 'unreachable',
  'Client was closed and is not queryable': 'unreachable',
  'Connection terminated': 'unreachable',
  'Connection terminated due to connection timeout': 'unreachable',
  'Connection terminated unexpectedly': 'unreachable',
  'Query read timeout': 'retryable', // our own deadline: no reply came, and whether the statement ran is unknown
  'timeout exceeded when trying to connect': 'retryable', // every connection of the pool is in use
  'timeout expired': 'unreachable', // while connecting
}

const CAUSES_MAX = 10

/** Looks at the error, its causes and the parts of aggregates; the first that is known decides. */
export function classify(error: unknown): Verdict {
  for (const cause of causesOf(error)) {
    const verdict = verdictOf(cause)
    if (verdict !== undefined) return verdict
  }
  return 'fatal'
}

function verdictOf(error: unknown): Verdict | undefined {
  const code = codeOf(error)
  if (code !== undefined) {
    if (isStalePlan(error)) return 'retryable'
    if (isMissingFile(error)) return undefined
    // Class 08 is every way in which a connection can fail.
    return VERDICTS[code] ?? (/^08...$/.test(code) ? 'unreachable' : undefined)
  }
  return error instanceof Error ? MESSAGES[error.message] : undefined
}

/** A file that a connection string or a command names, not the socket of a server. */
function isMissingFile(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' && (error as { readonly syscall?: unknown }).syscall === 'open'
}

/**
 * A migration changed a table under a prepared statement ("cached plan must not change result type"). The session keeps
 * the old statement, so it must be left. Known by the name of the C function: the message may be in any language.
 */
export function isStalePlan(error: unknown): boolean {
  return codeOf(error) === '0A000' && (error as { readonly routine?: unknown }).routine === 'RevalidateCachedQuery'
}

/** Errors after which a session is of no more use to us, though the server would go on with it. */
function spoilsSession(error: unknown): boolean {
  return isStalePlan(error) || codeOf(error) === '25006'
}

/** The server refused one statement and the session goes on. Anything else leaves the session in an unknown state. */
export function leavesSessionUsable(error: unknown): boolean {
  return isSqlState(codeOf(error)) && classify(error) !== 'unreachable' && !spoilsSession(error)
}

/** The named statement was unknown or taken, so nothing was run: either the session is another one than we think … */
export function isStatementUnknown(error: unknown): boolean {
  const code = codeOf(error)
  // … or, as some poolers put it, a protocol violation.
  return code === '26000' || (code === '08P01' && /prepared statement .* (?:does|did) not exist/i.test(textOf(error)))
}

export function isStatementTaken(error: unknown): boolean {
  return codeOf(error) === '42P05'
}

/** lock_timeout, or `nowait`: what the statement wanted is in use, and nothing was changed. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '55P03'
}

export function isSerializationFailure(error: unknown): boolean {
  return sqlStateOf(error) === '40001'
}

/** Raised by our own functions that refuse to run at another isolation level than READ COMMITTED. */
export function isIsolationRefusal(error: unknown): boolean {
  return sqlStateOf(error) === '25000'
}

/** No partition of `table` takes this row. */
export function isMissingPartition(error: unknown, table: string): boolean {
  const failed = serverErrorOf(error) as { readonly table?: unknown } | undefined
  return sqlStateOf(error) === '23514' && typeof failed?.table === 'string' && failed.table.startsWith(table)
}

/** `invalid_parameter_value`, with which our own functions refuse a setting; the message is for people. */
export function isRefusedSetting(error: unknown): boolean {
  return sqlStateOf(error) === '22023'
}

/** Raised by our own functions when an enqueue would exceed a quota. */
export function isQuotaRefusal(error: unknown): boolean {
  return sqlStateOf(error) === 'TQ001'
}

/** A value that the database cannot store, whatever its constraints: class 22, or class 54 for one that is too large. */
export function isRefusedValue(error: unknown): boolean {
  return /^(22|54)/.test(sqlStateOf(error) ?? '')
}

export function isBrokenConstraint(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('23') ?? false
}

/** Wrong user or password, or pg_hba.conf has no line for them. */
export function isLoginRefused(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('28') ?? false
}

/** node-postgres's own words, when a server wants a password and none was given, or one that is no text. */
export function isPasswordMissing(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof Error && cause.message.startsWith('SASL: '))
}

/** A grant is missing. */
export function isPrivilegeMissing(error: unknown): boolean {
  return sqlStateOf(error) === '42501'
}

export function isNoSuchDatabase(error: unknown): boolean {
  return sqlStateOf(error) === '3D000'
}

/** The SQLSTATE of the error, or of the first of its causes that has one. */
export function sqlStateOf(error: unknown): string | undefined {
  return codeOf(serverErrorOf(error))
}

/** What the server said, below what we have said about it. */
export function serverErrorOf(error: unknown): unknown {
  return causesOf(error).find((cause) => isSqlState(codeOf(cause)))
}

function isSqlState(code: string | undefined): boolean {
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE'
}

/** Undefined table, schema, function or column: what a statement of ours meets in a schema that it was not made for. */
const MISSING = ['42P01', '3F000', '42883', '42703']

/** The server is there and lets nobody in. */
function isKeptOut(error: unknown): boolean {
  return isLoginRefused(error) || isNoSuchDatabase(error) || isPasswordMissing(error)
}

/**
 * What an error of one of our own statements is to the user. `cause` keeps what the database said. `advice` is what we know
 * about where we connect to, for the errors that may be due to that.
 */
export function toTenantryError(error: unknown, schema: string, advice?: string): TenantryError {
  if (error instanceof TenantryError) return error
  const options = { cause: error }
  const advised = advice === undefined ? '' : `; ${advice}`
  if (MISSING.includes(codeOf(error) ?? '')) {
    return new TenantryError(
      'MIGRATION_REQUIRED',
      `the schema ${JSON.stringify(schema)} does not exist or is older than this version of tenantry (${textOf(error)}); ` +
        'run `npx tenantry migrate`, or call `await tenantry.migrate()`',
      options,
    )
  }
  if (classify(error) === 'unreachable') {
    const message = `the database cannot be reached; ${textOf(error)}${advised}`
    return new TenantryError('DATABASE_UNREACHABLE', message, options)
  }
  if (isKeptOut(error)) {
    return new TenantryError('QUERY_FAILED', `the database refuses the login; ${textOf(error)}${advised}`, options)
  }
  return new TenantryError('QUERY_FAILED', `a statement of tenantry failed; ${textOf(error)}`, options)
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Node's AggregateError of failed connection attempts has no message of its own. */
function textOf(error: unknown): string {
  const messages = causesOf(error).flatMap((cause) => (cause instanceof Error && cause.message ? [cause.message] : []))
  return messages[0] ?? String(error)
}

/** The error, its cause, the cause of that, and the parts of aggregates: Node reports one for each address it tried. */
export function causesOf(error: unknown): readonly unknown[] {
  const found: unknown[] = []
  let next: readonly unknown[] = [error]
  while (next.length > 0 && found.length < CAUSES_MAX) {
    found.push(...next)
    next = next.flatMap((each) => {
      if (!(each instanceof Error)) return []
      const parts: readonly unknown[] = each instanceof AggregateError ? each.errors : []
      return each.cause === undefined ? parts : [...parts, each.cause]
    })
  }
  return found
}
