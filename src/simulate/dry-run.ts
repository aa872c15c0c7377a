import { Scheduler } from '../scheduler/scheduler.js'
import type { TenantSettings } from '../scheduler/settings.js'
import { type LiveState, load } from './live-state.js'

export interface DryRunOptions {
  readonly dispatches: number
  readonly batch: number
  /** Kinds that the claims ask for; all that have jobs by default. */
  readonly kinds: readonly string[]
  /** What is tried: settings of tenants and of groups. */
  readonly tenants: ReadonlyMap<string, TenantSettings>
  readonly groups: ReadonlyMap<string, number>
}

export interface Dispatch {
  readonly tenant: string
  readonly kind: string
}

/**
 * What the next dispatches of a live queue would be. What runs goes on running, and what starts here ends before the next
 * claim; time stands still unless nothing can start without it.
 */
export function dryRun(live: LiveState, options: DryRunOptions): Dispatch[] {
  const scheduler = new Scheduler()
  load(scheduler, live)
  for (const [name, settings] of options.tenants) scheduler.configureTenant(name, settings)
  for (const [name, weight] of options.groups) scheduler.configureGroup(name, { weight })
  const kinds = options.kinds.length > 0 ? options.kinds : [...scheduler.state.kinds.keys()]
  const dispatches: Dispatch[] = []
  let nowMs = live.now_ms
  while (dispatches.length < options.dispatches) {
    const started = scheduler.claim(kinds, Math.min(options.batch, options.dispatches - dispatches.length), nowMs)
    for (const job of started) {
      dispatches.push({ tenant: job.lane.member.name, kind: job.lane.kind })
      scheduler.settle(job, { type: 'complete' }, nowMs)
    }
    if (started.length > 0) continue
    nowMs =
      scheduler.state.jobs.size > 0 && nowMs < live.now_ms + PATIENCE_MS
        ? scheduler.nextChangeMs(nowMs)
        : Number.POSITIVE_INFINITY
    if (nowMs === Number.POSITIVE_INFINITY) break
  }
  return dispatches
}

/** A tenant that is paused is looked at every few seconds for ever: the dry run ends when a day has brought nothing more. */
const PATIENCE_MS = 24 * 3_600_000
