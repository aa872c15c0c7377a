import { camelCase } from '../casing.js'
import { explain } from './explain.js'
import { remediesOf } from './remedies.js'
import type { Reason, Why } from './why.js'

/** Members that hold a time, as ISO 8601. */
const TIMES: readonly string[] = [
  'claimedAt',
  'finalizedAt',
  'lastSeenAt',
  'leaseUntil',
  'queryStartedAt',
  'runAt',
  'since',
]

/** An answer of `why_job_v1` or `why_tenant_v1`, with both its facts in words. */
export function readWhy(rule: string, detail: string): Why {
  // The functions and this union belong to one version; the tests of the rules hold them together.
  const reason = { rule, ...(camelCased(JSON.parse(detail)) as object) } as unknown as Reason
  return { ...reason, explanation: explain(reason), remedies: remediesOf(reason) }
}

function camelCased(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => camelCased(each))
  if (typeof value === 'string' && TIMES.includes(name)) return new Date(value)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, each]) => {
    const camel = camelCase(key)
    return [camel, camelCased(each, camel)]
  })
  return Object.fromEntries(members)
}
