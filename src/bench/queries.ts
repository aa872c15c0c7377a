import { withSchema } from '../store/schema-name.js'
import { BENCH_QUERIES } from './sql.gen.js'

export type BenchQuery = keyof typeof BENCH_QUERIES

export interface BenchQueryOptions {
  readonly schema?: string
  /** Jobs in one claim, where the statement has them in its text. */
  readonly batch?: number
}

/** The text of a statement of `sql/bench`. */
export function benchQuery(name: BenchQuery, { schema, batch }: BenchQueryOptions = {}): string {
  const text: string = BENCH_QUERIES[name]
  const placed = schema === undefined ? text : withSchema(text, schema)
  return batch === undefined ? placed : placed.replaceAll(':batch', String(Math.trunc(batch)))
}
