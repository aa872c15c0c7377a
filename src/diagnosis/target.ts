import { ConfigurationError } from '../errors.js'
import { jobId } from '../job/job-id.js'
import { checkKnownOptions, nameOption } from '../options.js'
import type { WhyTarget } from './why.js'

/** Checks what is asked about: a job, or a tenant of a queue. */
export function whyTarget(given: unknown): WhyTarget {
  checkKnownOptions('why', given, ['job', 'queue', 'tenant', 'kind'])
  const { job, queue, tenant, kind } = given as Readonly<Record<string, unknown>>
  if (job !== undefined) {
    if (queue !== undefined || tenant !== undefined || kind !== undefined) {
      throw new ConfigurationError('why takes a job, or a queue and a tenant, got both; ask about the one or the other')
    }
    return { job: jobId(job) }
  }
  return {
    queue: nameOption('queue', queue),
    tenant: nameOption('tenant', tenant),
    ...(kind !== undefined && { kind: nameOption('kind', kind) }),
  }
}
