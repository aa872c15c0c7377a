import { ConfigurationError } from '../errors.js'

/** PostgreSQL cuts longer names off without a word, and two schemas would become one. */
const NAME_BYTES_MAX = 63

/** Throws unless PostgreSQL can have a schema of exactly that name. Capitals, spaces, dots and quotes are all fine. */
export function checkSchemaName(schema: string): void {
  const problem = schemaNameProblem(schema)
  if (problem !== undefined) {
    throw new ConfigurationError(`expected schema to be ${problem}, got ${JSON.stringify(schema)}`)
  }
}

function schemaNameProblem(schema: string): string | undefined {
  if (typeof schema !== 'string' || schema === '') return 'the name of a PostgreSQL schema'
  const bytes = Buffer.from(schema)
  if (bytes.length > NAME_BYTES_MAX) return `at most ${NAME_BYTES_MAX} bytes long in UTF-8`
  if (schema.includes('\0') || bytes.toString() !== schema) return 'text without NUL characters and lone surrogates'
  if (schema.startsWith('pg_') || schema === 'information_schema') return "a name that is not PostgreSQL's own"
  // Function bodies stand between such marks, and the name stands inside the bodies.
  if (/\$\w*\$/.test(schema)) return 'a name without a $…$ that would end a function body'
  return undefined
}

/** The name as an SQL identifier. Always quoted, so that no name is special. */
export function quoteSchema(schema: string): string {
  checkSchemaName(schema)
  return `"${schema.replaceAll('"', '""')}"`
}

/** The bare name as an SQL string, right whatever `standard_conforming_strings` says. */
export function schemaLiteral(schema: string): string {
  checkSchemaName(schema)
  const quoted = `'${schema.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return schema.includes('\\') ? `E${quoted}` : quoted
}

/** Neither the cast `::schema_name` nor a longer word such as `:schemas`. */
const TOKEN = /(?<!:):schema(_literal)?(?!\w)/g

/**
 * Puts the schema into a text of ours: `:schema` becomes the quoted identifier, `:schema_literal` an SQL string with
 * the bare name. Write `:schema` nowhere inside an SQL string, since a name may hold an apostrophe.
 */
export function withSchema(text: string, schema: string): string {
  const identifier = quoteSchema(schema)
  const literal = schemaLiteral(schema)
  return text.replace(TOKEN, (_, isLiteral: string | undefined) => (isLiteral ? literal : identifier))
}
