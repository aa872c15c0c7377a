import { onTestFinished } from 'vitest'
import type { TenantryOptions } from '../../src/config.js'
import { Tenantry } from '../../src/tenantry.js'
import { createSchema, type TestSchema } from './database.js'

export interface TestTenantry extends TestSchema {
  readonly tenantry: Tenantry
  /** Another client on the same schema: another application process, as far as the database can tell. */
  another(options?: TenantryOptions): Tenantry
}

/** A migrated schema of its own and a client for it. Both go when the test has ended. */
export async function createTenantry(options: TenantryOptions = {}): Promise<TestTenantry> {
  const created = await createSchema()
  const { schema, connectionString } = created
  const another = (more: TenantryOptions = {}) => {
    const given = more.pool || more.connection ? more : { connectionString, ...more }
    const tenantry = new Tenantry({ schema, ...given })
    onTestFinished(() => tenantry.close())
    return tenantry
  }
  const tenantry = another(options)
  await tenantry.migrate()
  return { ...created, tenantry, another }
}
