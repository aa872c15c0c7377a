import type { Load, Percentiles, QueueNumbers, TenantNumbers } from '../numbers/numbers.js'
import { type Colors, type Column, table } from './output.js'

const right = (title: string): Column => ({ title, align: 'right' })

const TENANT_COLUMNS: readonly Column[] = [
  { title: 'tenant' },
  right('available'),
  right('blocked'),
  right('scheduled'),
  right('running'),
  right('oldest'),
  right('started'),
  right('failed'),
  right('share'),
  right('entitled'),
  right('wait p50'),
  right('p95'),
  right('p99'),
  right('lag'),
  { title: '' },
]

/** One tenant a line. */
export function tenantTable(tenants: readonly TenantNumbers[], colors: Colors): string {
  return table(TENANT_COLUMNS, tenants.map(tenantRow), colors)
}

function tenantRow(of: TenantNumbers): readonly string[] {
  return [
    of.tenant,
    ...loadCells(of),
    whole(of.started),
    whole(of.failed),
    percent(of.receivedShare),
    percent(of.entitledShare),
    ...waitCells(of.waitMs),
    of.passLag === undefined ? '-' : of.passLag.toFixed(1),
    tenantMarks(of).join(', '),
  ]
}

/** What an operator should see at once, the worst first. */
export function tenantMarks(of: TenantNumbers): readonly string[] {
  const { objective } = of
  return [
    ...(of.starved ? ['starved'] : []),
    ...(objective?.met === false ? [`misses ${percent(objective.share)} in ${duration(objective.waitMs)}`] : []),
    ...(of.paused ? ['paused'] : []),
    ...(of.parked && !of.paused ? ['at its limit'] : []),
    ...(of.noisy ? ['noisy'] : []),
  ]
}

/** The lines above the table of `top`: one queue in a few words. */
export function queueLines(of: QueueNumbers): readonly string[] {
  const { waitMs } = of
  const fairness = of.jain === undefined ? '' : `, Jain's index ${of.jain.toFixed(3)}`
  const waits = waitMs
    ? `wait p50 ${duration(waitMs.p50)}, p95 ${duration(waitMs.p95)}, p99 ${duration(waitMs.p99)}`
    : ''
  const objectives = of.objectivesMet + of.objectivesMissed
  return [
    `${of.strategy}${of.paused ? ', paused' : ''}; ${whole(of.workers)} workers with ${whole(of.slots)} slots, ` +
      `${whole(of.running)} running; ${whole(of.waitingTenants)} of ${whole(of.tenants)} tenants wait`,
    [
      `${counted(of.available, of)} available, ${whole(of.blocked)} blocked, ${whole(of.scheduled)} scheduled`,
      `${whole(of.started)} started, ${whole(of.failed)} failed${fairness}`,
      waits,
      `${whole(of.starved)} starved, ${whole(of.noisy)} noisy`,
      objectives > 0 ? `${whole(of.objectivesMissed)} of ${whole(objectives)} objectives missed` : '',
    ]
      .filter((part) => part !== '')
      .join('; '),
  ]
}

function loadCells(of: Load): readonly string[] {
  const { available, blocked, scheduled, running, oldestMs } = of
  return [counted(available, of), whole(blocked), whole(scheduled), whole(running), duration(oldestMs)]
}

/** A count that was broken off says so. */
function counted(count: number, { capped }: Pick<Load, 'capped'>): string {
  return `${whole(count)}${capped ? '+' : ''}`
}

function waitCells(wait: Percentiles | undefined): readonly string[] {
  return [duration(wait?.p50), duration(wait?.p95), duration(wait?.p99)]
}

function whole(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}

function percent(share: number | undefined): string {
  return share === undefined ? '-' : `${(share * 100).toFixed(1)}%`
}

/** Two significant digits and a unit: 7 ms, 320 ms, 4.2 s, 3.5 min, 2.1 h, 3.0 d. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '-'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${(ms / 60_000).toFixed(1)} min`
  if (ms < 86_400_000) return `${(ms / 3_600_000).toFixed(1)} h`
  return `${(ms / 86_400_000).toFixed(1)} d`
}
