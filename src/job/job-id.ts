import { expected } from '../options.js'

/** The id of a job: a bigint of PostgreSQL's as a decimal string. */
export function jobId(id: unknown): string {
  if (typeof id === 'string' && /^\d{1,19}$/.test(id) && BigInt(id) < 2n ** 63n) return id
  throw expected('the id of a job', 'the decimal string that enqueue returned', id)
}
