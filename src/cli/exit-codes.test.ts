import { describe, expect, it } from 'vitest'
import { ConfigurationError, TenantryError } from '../errors.js'
import { WorkloadError } from '../workload/workload.js'
import { CommandError, EXIT, failureOf, Interruption } from './exit-codes.js'

const withCode = (code: string, message = 'from the database') => Object.assign(new Error(message), { code })

describe('failureOf', () => {
  it.each([
    ['a refused connection', withCode('ECONNREFUSED'), EXIT.unavailable],
    ['a socket that is not there', Object.assign(withCode('ENOENT'), { syscall: 'connect' }), EXIT.unavailable],
    ['a host that is down', withCode('EHOSTDOWN'), EXIT.unavailable],
    ['a session that was idle too long', withCode('57P05'), EXIT.unavailable],
    ['a host that is not known', withCode('ENOTFOUND'), EXIT.unavailable],
    ['a server that starts up', withCode('57P03'), EXIT.unavailable],
    ['a lost connection', withCode('08006'), EXIT.unavailable],
    ['a socket that is not there', Object.assign(withCode('ENOENT'), { syscall: 'connect' }), EXIT.unavailable],
    ['a wrong password', withCode('28P01'), EXIT.noPermission],
    ['a missing grant', withCode('42501'), EXIT.noPermission],
    ['a database that does not exist', withCode('3D000'), EXIT.configuration],
    ['a wrong option', new ConfigurationError('x'), EXIT.configuration],
    ['tables that are missing', new TenantryError('MIGRATION_REQUIRED', 'x'), EXIT.configuration],
    ['a failed query', new TenantryError('QUERY_FAILED', 'x'), EXIT.failure],
    [
      'a missing grant inside a failed query',
      new TenantryError('QUERY_FAILED', 'x', { cause: withCode('42501') }),
      EXIT.noPermission,
    ],
    ['Ctrl-C', new Interruption('SIGINT'), 130],
    ['a polite kill', new Interruption('SIGTERM'), 143],
    ['a wrong argument', new CommandError(EXIT.usage, 'x'), EXIT.usage],
    ['a log that cannot be read', new WorkloadError('x'), EXIT.failure],
  ])('foresees %s', (_, error, exitCode) => {
    expect(failureOf(error)).toMatchObject({ exitCode, unexpected: false })
  })

  it('marks what nobody foresaw, whatever was thrown', () => {
    expect(failureOf(new TypeError('x is not a function'))).toEqual({
      exitCode: EXIT.failure,
      message: 'x is not a function',
      unexpected: true,
    })
    expect(failureOf('text')).toMatchObject({ exitCode: EXIT.failure, message: 'text', unexpected: true })
    expect(failureOf(undefined)).toMatchObject({ exitCode: EXIT.failure, unexpected: true })
  })

  it('finds the text of an aggregate that has none itself, as Node throws for a refused localhost', () => {
    const error = new AggregateError([withCode('ECONNREFUSED', 'connect ECONNREFUSED ::1:5432')], '')
    expect(failureOf(error)).toMatchObject({ exitCode: EXIT.unavailable, message: 'connect ECONNREFUSED ::1:5432' })
  })

  it('does not follow causes in a circle', () => {
    const error = new Error('round')
    error.cause = error
    expect(failureOf(error).exitCode).toBe(EXIT.failure)
  })
})
