/** node-postgres's client inside a transaction: what an application hands to its query builder. */
export type { ClientBase as TransactionClient } from 'pg'
