import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { resolveOptions } from './config.js'
import { createClient } from './driver/client.js'
import { toTenantryError } from './driver/pg-errors.js'
import { Tenantry } from './tenantry.js'

test('a connection string that is there and undefined is named when the connection fails', () => {
  const { connectionAdvice } = resolveOptions({ connectionString: undefined })
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })
  expect(toTenantryError(refused, 'tenantry', connectionAdvice)).toMatchObject({
    code: 'DATABASE_UNREACHABLE',
    message:
      'the database cannot be reached; connect ECONNREFUSED 127.0.0.1:5432; ' +
      'connectionString is undefined (is DATABASE_URL set?)',
  })
  const role = Object.assign(new Error('role "root" does not exist'), { code: '28000' })
  expect(toTenantryError(role, 'tenantry', connectionAdvice).message).toBe(
    'the database refuses the login; role "root" does not exist; connectionString is undefined (is DATABASE_URL set?)',
  )
  const query = Object.assign(new Error('division by zero'), { code: '22012' })
  expect(toTenantryError(query, 'tenantry', connectionAdvice).message).not.toContain('connectionString')
})

test('nothing is said of a connection string that was not given, or not needed', () => {
  for (const options of [{}, { connectionString: undefined, connection: { host: 'db' } }, { connectionString: 'x' }]) {
    expect(resolveOptions(options).connectionAdvice).toBeUndefined()
  }
})

test('a migration of a database that is not there rejects as an enqueue does, with where that is', async () => {
  await using tenantry = new Tenantry({ connectionString: 'postgres://u@127.0.0.1:1/d' })
  await expect(tenantry.migrate()).rejects.toMatchObject({
    name: 'TenantryError',
    code: 'DATABASE_UNREACHABLE',
    message: 'the database cannot be reached; connect ECONNREFUSED 127.0.0.1:1',
  })
})

test("workers connect with the password of the application's pool, which node-postgres hides", async () => {
  const pool = new pg.Pool({ host: 'db.example.com', user: 'app', password: 'secret' })
  onTestFinished(() => pool.end())
  for (const options of [{ pool }, { connection: pool.options }]) {
    const { client, listenClient } = resolveOptions(options)
    for (const config of [client, listenClient]) {
      expect(createClient({ ...config, pipeline: true })).toMatchObject({
        host: 'db.example.com',
        user: 'app',
        password: 'secret',
      })
    }
  }
})

test("the size of the application's pool is the application's business", () => {
  const pool = new pg.Pool()
  onTestFinished(() => pool.end())
  expect(() => resolveOptions({ pool, poolMax: 5 })).toThrow('pool and poolMax are both given')
})

test('without a password node-postgres finds one for itself', () => {
  expect(resolveOptions({ connectionString: 'postgres://db.example.com/app' }).client).toEqual({
    connectionString: 'postgres://db.example.com/app',
  })
})
