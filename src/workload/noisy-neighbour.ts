import type { Workload, WorkloadJob } from './workload.js'

export const NOISY_JOBS = 1_000
export const QUIET_TENANTS = 10
export const JOBS_PER_QUIET_TENANT = 5

/** "A few milliseconds": long enough that the handlers and not the claims are what takes time. */
const HANDLER_MS = 8

/**
 * The noisy neighbour in its plainest form: tenant 1 enqueues 1,000 jobs, and only then tenants 2 to 11 enqueue 5 each.
 * First in, first out starts the last quiet job as number 1,050; equal turns would start it as about number 55.
 */
export function noisyNeighbour(): Workload {
  const jobsOf = (tenant: number, count: number): WorkloadJob[] =>
    Array.from({ length: count }, () => ({ tenant: `tenant-${tenant}`, dueMs: 0, durationMs: HANDLER_MS }))
  const quiet = Array.from({ length: QUIET_TENANTS }, (_, index) => jobsOf(index + 2, JOBS_PER_QUIET_TENANT))
  return { jobs: [...jobsOf(1, NOISY_JOBS), ...quiet.flat()], noisyTenants: new Set(['tenant-1']) }
}
