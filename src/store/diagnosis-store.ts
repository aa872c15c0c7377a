import { readWhy } from '../diagnosis/read.js'
import type { Why, WhyTarget } from '../diagnosis/why.js'
import { Database, type Send } from './database.js'
import { column } from './rows.js'

/** Asks the database why things are as they are. */
export class DiagnosisStore {
  readonly #database: Database

  /** `advice`: see `toTenantryError`. */
  constructor(session: { readonly query: Send }, schema: string, advice?: string) {
    this.#database = new Database((query) => session.query(query), { schema, advice })
  }

  async why(target: WhyTarget): Promise<Why> {
    const { why_job: ofJob, why_tenant: ofTenant } = this.#database.statements
    const row = await ('job' in target
      ? this.#database.one(ofJob, [target.job])
      : this.#database.one(ofTenant, [target.queue, target.tenant, target.kind ?? null]))
    return readWhy(column(row, 'rule'), column(row, 'detail'))
  }
}
