import { expect, test } from 'vitest'
import { QUERIES } from './sql.gen.js'
import { statements } from './sql.js'

/** All but those that are about the session alone. */
const ofSchema = new Set(
  Object.entries(QUERIES)
    .filter(([, text]) => /:schema\b/.test(text))
    .map(([query]) => query),
)

test('every query has a statement whose name PostgreSQL keeps whole', () => {
  const all = statements('tenantry')
  expect(Object.keys(all)).toEqual(Object.keys(QUERIES))
  const names = Object.values(all).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(Buffer.byteLength(name)).toBeLessThan(64)
})

test('statements of two schemas have different names, since they may meet in one session', () => {
  const names = new Set(Object.values(statements('one')).map(({ name }) => name))
  for (const [query, { name }] of Object.entries(statements('two'))) {
    if (ofSchema.has(query)) expect(names).not.toContain(name)
  }
})

test('a schema with quotes in its name stands quoted in every statement (B84)', () => {
  for (const [query, { text }] of Object.entries(statements(`a"b'c`))) {
    if (ofSchema.has(query)) expect(text).toContain(`"a""b'c".`)
    expect(text).not.toMatch(/(?<!:):schema/)
  }
})
