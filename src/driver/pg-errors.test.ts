import { expect, test } from 'vitest'
import { TenantryError } from '../errors.js'
import {
  classify,
  isLockTimeout,
  isMissingPartition,
  isRefusedValue,
  leavesSessionUsable,
  sqlStateOf,
  toTenantryError,
  type Verdict,
} from './pg-errors.js'

function failure(code: string, more: object = {}): Error {
  return Object.assign(new Error(`failed with ${code}`), { code }, more)
}

test.each<[string, Error, Verdict]>([
  ['a serialization failure', failure('40001'), 'retryable'],
  ['a deadlock', failure('40P01'), 'retryable'],
  ['a lock timeout', failure('55P03'), 'retryable'],
  ['a statement timeout', failure('57014'), 'retryable'],
  ['a read-only server', failure('25006'), 'retryable'],
  ['a stale plan, in any language', failure('0A000', { routine: 'RevalidateCachedQuery' }), 'retryable'],
  ['a feature that is not there', failure('0A000', { routine: 'transformLockingClause' }), 'fatal'],
  ['a shutdown', failure('57P01'), 'unreachable'],
  ['a crash', failure('57P02'), 'unreachable'],
  ['a start', failure('57P03'), 'unreachable'],
  ['too many connections', failure('53300'), 'unreachable'],
  ['any connection exception', failure('08006'), 'unreachable'],
  ['a refused connection', failure('ECONNREFUSED'), 'unreachable'],
  ['the socket of a server that does not run', failure('ENOENT', { syscall: 'connect' }), 'unreachable'],
  ['a missing file of a certificate', failure('ENOENT', { syscall: 'open' }), 'fatal'],
  ['a reset connection', failure('ECONNRESET'), 'unreachable'],
  ['a broken pipe, whose code looks like an SQLSTATE', failure('EPIPE'), 'unreachable'],
  ['a lost connection', new Error('Connection terminated unexpectedly'), 'unreachable'],
  ['a reply that never came', new Error('Query read timeout'), 'retryable'],
  ['a pool that is in use', new Error('timeout exceeded when trying to connect'), 'retryable'],
  ['every address refused', new AggregateError([failure('ECONNREFUSED')]), 'unreachable'],
  ['an error around another one', new Error('claim failed', { cause: failure('40P01') }), 'retryable'],
  ['a wrong password', failure('28P01'), 'fatal'],
  ['a missing table', failure('42P01'), 'fatal'],
  ['a unique violation', failure('23505'), 'fatal'],
  ['a bug', new TypeError('x is not a function'), 'fatal'],
])('%s is classified', (_, error, verdict) => {
  expect(classify(error)).toBe(verdict)
})

test('an error that is its own cause is classified and does not hang', () => {
  const error = new Error('round')
  error.cause = error
  expect(classify(error)).toBe('fatal')
})

test('anything may have been thrown', () => {
  for (const thrown of [undefined, null, 'text', 42, { code: '40001' }]) expect(classify(thrown)).toBe('fatal')
})

test('what the server said is found below what was said about it', () => {
  const wrapped = (error: Error) => new TenantryError('QUERY_FAILED', 'failed', { cause: error })
  expect(sqlStateOf(wrapped(failure('42501')))).toBe('42501')
  expect(sqlStateOf(failure('EPIPE'))).toBeUndefined()
  expect(isLockTimeout(wrapped(failure('55P03')))).toBe(true)
  expect(isRefusedValue(wrapped(failure('22P05')))).toBe(true)
  expect(isMissingPartition(wrapped(failure('23514', { table: 'job_history_settled' })), 'job_history')).toBe(true)
  expect(isMissingPartition(wrapped(failure('23514', { table: 'job' })), 'job_history')).toBe(false)
})

test.each([
  ['a statement that failed', failure('23505'), true],
  ['a lock timeout', failure('55P03'), true],
  ['a shutdown', failure('57P01'), false],
  ['a stale plan', failure('0A000', { routine: 'RevalidateCachedQuery' }), false],
  ['a read-only server', failure('25006'), false],
  ['a broken pipe', failure('EPIPE'), false],
  ['a reply that never came', new Error('Query read timeout'), false],
  ['a bug', new TypeError('x is not a function'), false],
])('after %s the session is used again or not', (_, error, usable) => {
  expect(leavesSessionUsable(error)).toBe(usable)
})

test.each([
  ['42P01', 'MIGRATION_REQUIRED'],
  ['3F000', 'MIGRATION_REQUIRED'],
  ['42883', 'MIGRATION_REQUIRED'],
  ['ECONNREFUSED', 'DATABASE_UNREACHABLE'],
  ['22012', 'QUERY_FAILED'],
])('%s becomes %s, and keeps its cause', (code, expected) => {
  const error = failure(code)
  expect(toTenantryError(error, 'tenantry')).toMatchObject({ code: expected, cause: error })
})

test('a missing schema is named, with the command that creates it', () => {
  expect(toTenantryError(failure('42P01'), "o'hara").message).toBe(
    'the schema "o\'hara" does not exist or is older than this version of tenantry (failed with 42P01); ' +
      'run `npx tenantry migrate`, or call `await tenantry.migrate()`',
  )
})

test('an error of ours stays as it is', () => {
  const error = new TenantryError('LEASE_LOST', 'gone')
  expect(toTenantryError(error, 'tenantry')).toBe(error)
})
