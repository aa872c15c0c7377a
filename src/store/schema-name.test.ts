import { expect, test } from 'vitest'
import { ConfigurationError } from '../errors.js'
import { checkSchemaName, quoteSchema, schemaLiteral, withSchema } from './schema-name.js'

test.each([
  ['tenantry', '"tenantry"', "'tenantry'"],
  ['MySchema', '"MySchema"', "'MySchema'"],
  ['a.b', '"a.b"', "'a.b'"],
  ['a"b', '"a""b"', "'a\"b'"],
  ["o'hara", '"o\'hara"', "'o''hara'"],
  ['back\\slash', '"back\\slash"', "E'back\\\\slash'"],
  ['select', '"select"', "'select'"],
  ['$&', '"$&"', "'$&'"],
])('%j is quoted as an identifier and as a string (B84)', (name, identifier, literal) => {
  expect(quoteSchema(name)).toBe(identifier)
  expect(schemaLiteral(name)).toBe(literal)
  expect(withSchema('table :schema.job, :schema_literal', name)).toBe(`table ${identifier}.job, ${literal}`)
})

test.each([
  ['nothing', ''],
  ['64 bytes', 'x'.repeat(64)],
  ['64 bytes in 32 characters', 'ш'.repeat(32)],
  ['a NUL', 'a\0b'],
  ['a lone surrogate', 'a\ud800'],
  ["PostgreSQL's prefix", 'pg_mine'],
  ['the information schema', 'information_schema'],
  ['the end of a function body', 'a$$b'],
])('a schema name of %s is refused (B84)', (_, name) => {
  expect(() => checkSchemaName(name)).toThrow(ConfigurationError)
})

test('63 bytes are accepted, in any alphabet', () => {
  checkSchemaName('x'.repeat(63))
  checkSchemaName(`${'ш'.repeat(31)}x`)
})

test('only the schema tokens are replaced, not casts and not longer words', () => {
  const text = 'select x::schema_kind, y::schema, :schemas, :schema_literals from :schema.job where a = :schema_literal'
  expect(withSchema(text, 's')).toBe(
    `select x::schema_kind, y::schema, :schemas, :schema_literals from "s".job where a = 's'`,
  )
})
