import type pg from 'pg'
import { POOL_SIZE_DEFAULT } from './driver/pool.js'
import { ConfigurationError } from './errors.js'
import { PAYLOAD_BYTES_DEFAULT } from './limits.js'
import { type Logger, silentLogger } from './logger.js'
import { checkKnownOptions, integerOption } from './options.js'
import { checkSchemaName } from './store/schema-name.js'

/** Where the tables are unless told otherwise. */
export const DEFAULT_SCHEMA = 'tenantry'

/** PostgreSQL's own bound of one value. */
const PAYLOAD_BYTES_MAX = 1024 ** 3 - 1

export interface TenantryOptions {
  /** postgres://user:password@host:5432/database. Default: what node-postgres reads from `PGHOST`, `PGUSER` and so on. */
  readonly connectionString?: string | undefined
  /** Instead of `connectionString`: node-postgres's client configuration, for TLS and the like. */
  readonly connection?: pg.ClientConfig
  /** An existing pool for enqueues and handlers' transactions. It is never ended by Tenantry. Workers open their own connections. */
  readonly pool?: pg.Pool
  /** Connections of the pool that is opened when none is given. Default 10. */
  readonly poolMax?: number
  /** For LISTEN, when `connectionString` leads through a pooler in transaction mode: a direct connection. */
  readonly listenConnectionString?: string
  /** The schema that holds the tables. Any name. Default 'tenantry'. */
  readonly schema?: string
  /** Largest payload in bytes of JSON. Default 262,144. */
  readonly payloadBytesMax?: number
  /** `console`, pino, winston. Default: nothing is logged, so pass one. Payloads are never logged. */
  readonly logger?: Logger
}

export interface ResolvedTenantryOptions {
  readonly client: pg.ClientConfig
  readonly listenClient: pg.ClientConfig
  readonly pool: pg.Pool | undefined
  readonly poolMax: number
  readonly schema: string
  /** What an error of a connection should say besides: that an option was most likely meant to be something. */
  readonly connectionAdvice: string | undefined
  readonly payloadBytesMax: number
  readonly logger: Logger
}

const OPTIONS = [
  'connectionString',
  'connection',
  'pool',
  'poolMax',
  'listenConnectionString',
  'schema',
  'payloadBytesMax',
  'logger',
] as const satisfies (keyof TenantryOptions)[]

export function resolveOptions(options: TenantryOptions): ResolvedTenantryOptions {
  checkKnownOptions('new Tenantry', options, OPTIONS)
  const { connectionString, connection, pool, schema = DEFAULT_SCHEMA, logger = silentLogger } = options
  if (connectionString !== undefined && connection !== undefined) {
    throw new ConfigurationError('connectionString and connection are both given; give one of them')
  }
  if (pool !== undefined && options.poolMax !== undefined) {
    throw new ConfigurationError('pool and poolMax are both given; set the size of your pool where you make it')
  }
  checkSchemaName(schema)
  const client = visible(connection ?? (connectionString !== undefined ? { connectionString } : (pool?.options ?? {})))
  return Object.freeze({
    client,
    listenClient:
      options.listenConnectionString === undefined ? client : { connectionString: options.listenConnectionString },
    pool,
    connectionAdvice: adviceOf(options),
    poolMax: integerOption('poolMax', options.poolMax ?? POOL_SIZE_DEFAULT, { min: 1, max: 1_000 }),
    schema,
    payloadBytesMax: integerOption('payloadBytesMax', options.payloadBytesMax ?? PAYLOAD_BYTES_DEFAULT, {
      min: 1,
      max: PAYLOAD_BYTES_MAX,
    }),
    logger,
  })
}

/** The key is there and its value is not: `process.env.SOMETHING` that is not set. */
function adviceOf(options: TenantryOptions): string | undefined {
  const isForgotten = 'connectionString' in options && options.connectionString === undefined
  if (!isForgotten || options.connection !== undefined || options.pool !== undefined) return undefined
  return 'connectionString is undefined (is DATABASE_URL set?)'
}

/** A copy that can be copied again: node-postgres hides the password of a pool from every spread. */
function visible(client: pg.ClientConfig): pg.ClientConfig {
  return 'password' in client ? { ...client, password: client.password } : { ...client }
}
