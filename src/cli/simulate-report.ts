import type { RunFigures, TenantFigures } from '../simulate/figures.js'
import type { Simulated } from '../simulate/simulate.js'
import { type Colors, type Column, table } from './output.js'

const right = (title: string): Column => ({ title, align: 'right' })

const COLUMNS: readonly Column[] = [
  { title: 'tenant' },
  right('jobs'),
  right('share'),
  right('entitled'),
  right('wait p50'),
  right('p95'),
  right('p99'),
  right('FIFO p50'),
  right('p95'),
  right('p99'),
]

/** One tenant a line, those with most jobs first, and all together. */
export function simulatedTable({ fair, fifo }: Simulated, rows: number, colors: Colors): string {
  const before = new Map(fifo.tenants.map((each) => [each.tenant, each]))
  const lines = fair.tenants.slice(0, rows).map((each) => tenantRow(each, before.get(each.tenant)))
  const all = ['all', whole(fair.dispatches), '', '', ...waits(fair.waitMs), ...waits(fifo.waitMs)]
  return table(COLUMNS, [...lines, all], colors)
}

export function fairnessLine({ fair, fifo }: Simulated): string {
  return `Jain's index of received over entitled: ${index(fair)} fair, ${index(fifo)} FIFO.`
}

function tenantRow(of: TenantFigures, fifo: TenantFigures | undefined): readonly string[] {
  return [
    of.tenant,
    whole(of.jobs),
    percent(of.receivedShare),
    percent(of.entitledShare),
    ...waits(of.waitMs),
    ...waits(fifo?.waitMs ?? null),
  ]
}

function waits(of: TenantFigures['waitMs']): readonly string[] {
  return of ? [of.p50, of.p95, of.p99].map(inSeconds) : ['-', '-', '-']
}

function index({ jain }: RunFigures): string {
  return jain === null ? '-' : jain.toFixed(4)
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 })} s`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`
}

function whole(count: number): string {
  return count.toLocaleString('en-US')
}

/** What the dry run found for a tenant. Part of what `--json` prints: members are added, never renamed or removed. */
export interface TenantDispatches {
  readonly tenant: string
  readonly dispatches: number
  /** Place of the first one, from 1; null when there is none. */
  readonly first: number | null
  /** With the settings as they are. */
  readonly dispatchesNow: number
  readonly firstNow: number | null
}

const LIVE_COLUMNS: readonly Column[] = [
  { title: 'tenant' },
  right('dispatches'),
  right('first'),
  right('as it is set now'),
  right('first'),
]

export function dispatchesTable(tenants: readonly TenantDispatches[], tried: boolean, colors: Colors): string {
  const count = (value: number | null) => (value === null ? '-' : whole(value))
  const rows = tenants.map((of) => [
    of.tenant,
    whole(of.dispatches),
    count(of.first),
    whole(of.dispatchesNow),
    count(of.firstNow),
  ])
  return tried
    ? table(LIVE_COLUMNS, rows, colors)
    : table(
        LIVE_COLUMNS.slice(0, 3),
        rows.map((row) => row.slice(0, 3)),
        colors,
      )
}
