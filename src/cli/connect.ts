import { userInfo } from 'node:os'
import { DEFAULT_SCHEMA } from '../config.js'
import { CommandError, EXIT } from './exit-codes.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Where the database is. Without a connection string node-postgres itself reads the `PG*` variables. */
export interface Connection {
  readonly connectionString: string | undefined
  /** For people: where it leads and which variable said so, without the password. */
  readonly description: string
}

const URL_VARIABLES = ['TENANTRY_DATABASE_URL', 'DATABASE_URL'] as const
const PG_VARIABLES = ['PGHOST', 'PGPORT', 'PGDATABASE', 'PGUSER', 'PGPASSWORD'] as const

/** For --help. */
export const CONNECTION_HELP = `Environment:
  TENANTRY_DATABASE_URL    the database, as postgres://user:password@host:5432/database
  DATABASE_URL             the same, when the first is not set
  PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE
                           as for psql, when neither is set
  TENANTRY_SCHEMA          the schema, when --schema is not given (default: tenantry)`

/** TENANTRY_DATABASE_URL, then DATABASE_URL; undefined when neither is set. */
export function urlFrom(environment: Environment): Connection | undefined {
  const variable = URL_VARIABLES.find((name) => environment[name])
  if (!variable) return undefined
  const connectionString = environment[variable] ?? ''
  if (!/^postgres(ql)?:\/\//.test(connectionString)) {
    throw new CommandError(
      EXIT.configuration,
      `expected ${variable} to start with postgres://, got ${masked(connectionString)}; ` +
        'set it to postgres://user:password@host:5432/database',
    )
  }
  return { connectionString, description: `${masked(connectionString)} (from ${variable})` }
}

/** The database that a command works on, or an error that says how to name one. */
export function connectionFrom(environment: Environment): Connection {
  const url = urlFrom(environment)
  if (url) return url
  if (PG_VARIABLES.some((name) => environment[name])) {
    const { PGHOST: host = 'localhost', PGPORT: port = '5432', PGUSER: user = userInfo().username } = environment
    const { PGDATABASE: database = user } = environment
    return { connectionString: undefined, description: `postgres://${user}@${host}:${port}/${database} (from PG*)` }
  }
  const { PGSERVICE } = environment
  const service = PGSERVICE ? '; PGSERVICE is not supported by node-postgres' : ''
  throw new CommandError(
    EXIT.configuration,
    'no database is named; set TENANTRY_DATABASE_URL or DATABASE_URL to postgres://user:password@host:5432/database, ' +
      `or PGHOST, PGUSER and so on${service}`,
  )
}

/** `--schema`, then TENANTRY_SCHEMA, then the library's default. */
export function schemaFrom(option: string | undefined, environment: Environment): string {
  const { TENANTRY_SCHEMA } = environment
  return option ?? (TENANTRY_SCHEMA || DEFAULT_SCHEMA)
}

/** The connection string without anything secret. What cannot be taken apart for certain is not repeated at all. */
export function masked(connectionString: string): string {
  let url: URL
  try {
    url = new URL(connectionString)
  } catch {
    return 'a value that is no URL'
  }
  if (!/^postgres(ql)?:$/.test(url.protocol)) return `a URL that starts with ${url.protocol}`
  if (url.password) url.password = '***'
  for (const name of url.searchParams.keys()) {
    if (/pass|secret|token|key/i.test(name)) url.searchParams.set(name, '***')
  }
  return url.href
}
