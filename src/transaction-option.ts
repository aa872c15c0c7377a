import { ConfigurationError } from './errors.js'
import { expected } from './options.js'
import type { Queryable } from './store/store.js'

/**
 * The caller's transaction, as far as it can be told from outside. An enqueue that quietly runs in no transaction is
 * noticed only after a rollback that left the job behind.
 */
export function transactionOption(value: unknown): Queryable | undefined {
  if (value === undefined) return undefined
  if (!isQueryable(value)) {
    throw expected('transaction', 'a client with an open transaction, or anything with its query()', value)
  }
  if (isPool(value)) {
    const what = 'expected transaction to be a client with an open transaction, got a pool'
    throw new ConfigurationError(`${what}; use a client from pool.connect() after "begin"`)
  }
  if (isIdle(value)) {
    const what = 'expected transaction to be a client with an open transaction, got one that is in none'
    throw new ConfigurationError(`${what}; use it after "begin" and before "commit"`)
  }
  return value
}

function isQueryable(value: unknown): value is Queryable {
  return typeof value === 'object' && value !== null && 'query' in value && typeof value.query === 'function'
}

/** By its shape: the application may have a node-postgres of its own, and a class of its own around it. */
function isPool(value: object): boolean {
  return 'totalCount' in value && 'idleCount' in value
}

/** Only newer node-postgres tells. */
function isIdle(value: object): boolean {
  if (!('getTransactionStatus' in value) || typeof value.getTransactionStatus !== 'function') return false
  return value.getTransactionStatus() === 'I'
}
