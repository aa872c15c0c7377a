import type { KindSettings, QueueSettings, SettingsChange } from '../settings/settings.js'
import type { Tenantry } from '../tenantry.js'

/** What an operator has set in a queue that is measured. As data, since it goes into the result. */
export interface Governance {
  readonly queue?: SettingsChange<QueueSettings>
  /** Of the only kind. */
  readonly kind?: SettingsChange<KindSettings>
  /** Tenant n has the weight at n, beginning anew after the last. */
  readonly weights?: readonly number[]
  /** The tenants are spread over so many groups. */
  readonly groups?: number
  /** Every job has a key, and no other job has it. */
  readonly keyed?: true
  readonly parked?: Parked
}

/** Tenants that may run one job, and do during the whole measurement. */
export interface Parked {
  readonly tenants: number
  /** Jobs of each that wait. */
  readonly backlog: number
}

/** Whose setting makes the claim look for limits of tenants, and who never has a job. */
const LIMITED_TENANT = 'nobody'

export interface Governed {
  readonly queue: string
  readonly kind: string
  readonly tenants: readonly string[]
}

/** Makes the settings through the API, as an operator does. */
export async function govern(
  tenantry: Tenantry,
  { queue, kind, weights, groups, parked }: Governance,
  governed: Governed,
): Promise<void> {
  if (queue) await tenantry.configureQueue(governed.queue, queue)
  if (kind) await tenantry.configureKind(governed.queue, governed.kind, kind)
  if (parked) await tenantry.configureTenant(governed.queue, LIMITED_TENANT, { concurrency: 1 })
  if (!weights && !groups) return
  for (const [index, tenant] of governed.tenants.entries()) {
    const weight = weights?.[index % weights.length]
    await tenantry.configureTenant(governed.queue, tenant, {
      weight,
      ...(groups && { group: `group-${index % groups}` }),
    })
  }
}
