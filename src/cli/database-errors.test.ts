import { expect, test } from 'vitest'
import { TenantryError } from '../errors.js'
import { explained } from './database-errors.js'
import { EXIT, Interruption } from './exit-codes.js'

const connection = { connectionString: 'postgres://u:p@h/d', description: 'postgres://u:***@h/d (from DATABASE_URL)' }
const withCode = (code: string, message: string) => Object.assign(new Error(message), { code })

test.each([
  [
    withCode('28P01', 'password authentication failed for user "u"'),
    EXIT.noPermission,
    'cannot log in to postgres://u:***@h/d (from DATABASE_URL): password authentication failed for user "u"; ' +
      'check user and password',
  ],
  [
    new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
    EXIT.noPermission,
    'the server asks for a password and the URL has none: postgres://u:***@h/d (from DATABASE_URL)',
  ],
  [
    withCode('3D000', 'database "d" does not exist'),
    EXIT.configuration,
    'database "d" does not exist at postgres://u:***@h/d (from DATABASE_URL); create it: createdb d',
  ],
  [
    withCode('42501', 'permission denied for database d'),
    EXIT.noPermission,
    'permission denied for database d at postgres://u:***@h/d (from DATABASE_URL); ' +
      'grant create on database d to the role; see docs/operations.md',
  ],
  [
    withCode('42501', 'permission denied for table job'),
    EXIT.noPermission,
    'permission denied for table job at postgres://u:***@h/d (from DATABASE_URL); ' +
      'the role lacks a grant; see docs/operations.md',
  ],
  [
    withCode('ECONNREFUSED', 'connect ECONNREFUSED 1.2.3.4:5432'),
    EXIT.unavailable,
    'cannot connect to postgres://u:***@h/d (from DATABASE_URL): connect ECONNREFUSED 1.2.3.4:5432; check that address',
  ],
])('%s says where it was and what to do, by itself and as the cause of another', (error, exitCode, message) => {
  expect(explained(error, connection)).toMatchObject({ exitCode, message })
  const outer = new TenantryError('QUERY_FAILED', error.message, { cause: error })
  expect(explained(outer, connection)).toMatchObject({ exitCode, message })
})

test('what has nothing to do with getting in stays as it is', () => {
  for (const error of [new Interruption('SIGINT'), new TypeError('x'), withCode('22012', 'division by zero'), 'text']) {
    expect(explained(error, connection)).toBe(error)
  }
})
