import { Scheduler } from '../scheduler/scheduler.js'
import type { Charge, TenantSettings } from '../scheduler/settings.js'
import type { WorkloadJob } from '../workload/workload.js'
import { Entitlement, type Party } from './entitlement.js'
import { figuresOf, type RunFigures } from './figures.js'
import { fairOrder, fifoOrder } from './orders.js'
import { type Order, type RunOptions, run } from './run.js'

export interface SimulateOptions {
  readonly slots: number
  readonly batch: number
  readonly charge: Charge
  readonly tenants: ReadonlyMap<string, TenantSettings>
  readonly groups: ReadonlyMap<string, number>
}

export interface Simulated {
  readonly fair: RunFigures
  readonly fifo: RunFigures
}

/** Runs a workload once through the fair order and once first in, first out, on slots that are all alike. */
export function simulate(jobs: readonly WorkloadJob[], options: SimulateOptions): Simulated {
  return {
    fair: figured(jobs, fairOrder(scheduled(options), jobs), options),
    fifo: figured(jobs, fifoOrder(), options),
  }
}

function scheduled({ charge, tenants, groups }: SimulateOptions): Scheduler {
  const scheduler = new Scheduler()
  if (charge !== 'jobs') scheduler.configureQueue({ charge })
  for (const [name, settings] of tenants) scheduler.configureTenant(name, settings)
  for (const [name, weight] of groups) scheduler.configureGroup(name, { weight })
  return scheduler
}

function figured(jobs: readonly WorkloadJob[], order: Order, options: SimulateOptions): RunFigures {
  const { slots, batch, charge, tenants, groups } = options
  const parties = new Map<string, Party>()
  for (const { tenant } of jobs) {
    const settings = tenants.get(tenant)
    if (!parties.has(tenant))
      parties.set(tenant, { weight: settings?.weight ?? 1, group: settings?.group ?? undefined })
  }
  const entitlement = new Entitlement(parties, groups)
  const serviceOf: RunOptions['serviceOf'] = charge === 'time' ? ({ durationMs }) => durationMs / 1_000 : () => 1
  return figuresOf(jobs, run(jobs, order, { slots, batch, serviceOf, entitlement }), entitlement)
}
