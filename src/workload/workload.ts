/** One job of a workload: whose it is, when it is enqueued and for how long its handler works. */
export interface WorkloadJob {
  readonly tenant: string
  /** Since the beginning of the run. */
  readonly dueMs: number
  readonly durationMs: number
}

/** What is run through every strategy that is compared. */
export interface Workload {
  /** In the order in which they are enqueued: `dueMs` never decreases. */
  readonly jobs: readonly WorkloadJob[]
  /** The tenants whose backlog the others suffer from. All others are the quiet tenants. */
  readonly noisyTenants: ReadonlySet<string>
}

/** The two classes of tenants whose waits are compared. */
export type TenantClass = 'noisy' | 'quiet'

export function classOf(workload: Workload, tenant: string): TenantClass {
  return workload.noisyTenants.has(tenant) ? 'noisy' : 'quiet'
}

export function countByClass(workload: Workload): Readonly<Record<TenantClass, number>> {
  const noisy = workload.jobs.filter((job) => workload.noisyTenants.has(job.tenant)).length
  return { noisy, quiet: workload.jobs.length - noisy }
}

/** A recorded workload that cannot be used, or a run that went wrong. The message is meant for the operator. */
export class WorkloadError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'WorkloadError'
  }
}
