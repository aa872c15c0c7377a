import { describe, expect, it } from 'vitest'
import { connectionFrom, masked, schemaFrom, urlFrom } from './connect.js'
import { EXIT } from './exit-codes.js'

const thrownBy = (act: () => unknown): { exitCode?: number; message: string } => {
  try {
    act()
  } catch (error) {
    return error as Error
  }
  throw new Error('expected an error')
}

describe('connectionFrom', () => {
  it('prefers TENANTRY_DATABASE_URL to DATABASE_URL, and both to PG*', () => {
    const all = { TENANTRY_DATABASE_URL: 'postgres://a/x', DATABASE_URL: 'postgres://b/x', PGHOST: 'c' }
    expect(connectionFrom(all).connectionString).toBe('postgres://a/x')
    expect(connectionFrom({ ...all, TENANTRY_DATABASE_URL: '' }).connectionString).toBe('postgres://b/x')
    expect(connectionFrom({ PGHOST: 'c', PGUSER: 'u' })).toEqual({
      connectionString: undefined,
      description: 'postgres://u@c:5432/u (from PG*)',
    })
  })

  it('says how to name a database when none is named', () => {
    const error = thrownBy(() => connectionFrom({}))
    expect(error.exitCode).toBe(EXIT.configuration)
    expect(error.message).toContain('set TENANTRY_DATABASE_URL or DATABASE_URL')
  })

  it('refuses the URL of another kind of database without repeating its password', () => {
    const error = thrownBy(() => urlFrom({ DATABASE_URL: 'mysql://u:hunter2@h/d' }))
    expect(error.exitCode).toBe(EXIT.configuration)
    expect(error.message).toContain('expected DATABASE_URL to start with postgres://')
    expect(error.message).not.toContain('hunter2')
  })
})

describe('masked', () => {
  it.each([
    ['postgres://u:hunter2@h:5433/d', 'postgres://u:***@h:5433/d'],
    ['postgresql://u@h/d', 'postgresql://u@h/d'],
    ['postgres://u@h/d?password=hunter2&sslmode=require', 'postgres://u@h/d?password=***&sslmode=require'],
    ['postgres://u:hunter2@h:port/d', 'a value that is no URL'],
    ['hunter2', 'a value that is no URL'],
  ])('shows %s as %s', (given, shown) => {
    expect(masked(given)).toBe(shown)
  })
})

describe('schemaFrom', () => {
  it('prefers the option to the environment, and that to the default', () => {
    expect(schemaFrom('a', { TENANTRY_SCHEMA: 'b' })).toBe('a')
    expect(schemaFrom(undefined, { TENANTRY_SCHEMA: 'b' })).toBe('b')
    expect(schemaFrom(undefined, { TENANTRY_SCHEMA: '' })).toBe('tenantry')
  })
})
