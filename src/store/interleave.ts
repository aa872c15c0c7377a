import type { Job } from '../job/job.js'

/**
 * The order in which the jobs of one claim start: one of each tenant in turn, each tenant's own in their order. A claim
 * gives every tenant its turn of several jobs; without this a small tenant would start behind the whole turn of another.
 */
export function interleave(jobs: readonly Job[]): Job[] {
  const byTenant = new Map<string, Job[]>()
  for (const job of jobs) {
    const own = byTenant.get(job.tenant)
    if (own) own.push(job)
    else byTenant.set(job.tenant, [job])
  }
  const ordered: Job[] = []
  for (let place = 0; ordered.length < jobs.length; place++) {
    for (const own of byTenant.values()) {
      const job = own[place]
      if (job) ordered.push(job)
    }
  }
  return ordered
}
