import type { TextRow } from '../driver/statement.js'
import type { Load, ObjectiveReached, Percentiles, QueueNumbers, Received, TenantNumbers } from '../numbers/numbers.js'
import type { Charge, Strategy } from '../settings/settings.js'
import { column, optionalNumber } from './rows.js'

export function toTenantNumbers(row: TextRow): TenantNumbers {
  return {
    tenant: column(row, 'tenant'),
    group: row['grp'] ?? undefined,
    weight: number(row, 'weight'),
    paused: flag(row, 'paused'),
    parked: flag(row, 'parked'),
    concurrency: optionalNumber(row, 'concurrency'),
    ratePerSecond: optionalNumber(row, 'rate_per_second'),
    ...load(row),
    pass: optionalNumber(row, 'pass'),
    passLag: optionalNumber(row, 'pass_lag'),
    starved: flag(row, 'starved'),
    noisy: flag(row, 'noisy'),
    ...service(row),
    receivedShare: optionalNumber(row, 'received_share'),
    entitledShare: number(row, 'entitled_share'),
    objective: objective(row),
  }
}

export function toQueueNumbers(row: TextRow): QueueNumbers {
  return {
    queue: column(row, 'queue'),
    strategy: column(row, 'strategy') as Strategy,
    charge: column(row, 'charge') as Charge,
    paused: flag(row, 'paused'),
    workers: number(row, 'workers'),
    slots: number(row, 'slots'),
    tenants: number(row, 'tenants'),
    waitingTenants: number(row, 'waiting_tenants'),
    ...load(row),
    ...service(row),
    starved: number(row, 'starved'),
    noisy: number(row, 'noisy'),
    objectivesMet: number(row, 'objectives_met'),
    objectivesMissed: number(row, 'objectives_missed'),
    jain: optionalNumber(row, 'jain'),
  }
}

function load(row: TextRow): Load {
  return {
    available: number(row, 'available'),
    blocked: number(row, 'blocked'),
    scheduled: number(row, 'scheduled'),
    capped: flag(row, 'capped'),
    running: number(row, 'running'),
    oldestMs: milliseconds(optionalNumber(row, 'oldest_seconds')),
  }
}

function service(row: TextRow): Received {
  return {
    started: number(row, 'started'),
    completed: number(row, 'completed'),
    failed: number(row, 'failed'),
    busyMs: number(row, 'busy_seconds') * 1_000,
    waitMs: percentiles(row, 'wait'),
    runMs: percentiles(row, 'run'),
  }
}

function percentiles(row: TextRow, measure: 'wait' | 'run'): Percentiles | undefined {
  const p50 = optionalNumber(row, `${measure}_p50_ms`)
  if (p50 === undefined) return undefined
  return { p50, p95: number(row, `${measure}_p95_ms`), p99: number(row, `${measure}_p99_ms`) }
}

function objective(row: TextRow): ObjectiveReached | undefined {
  const waitMs = optionalNumber(row, 'objective_wait_ms')
  if (waitMs === undefined) return undefined
  return {
    waitMs,
    share: number(row, 'objective_share'),
    reached: optionalNumber(row, 'objective_reached'),
    met: row['objective_met'] === null ? undefined : flag(row, 'objective_met'),
  }
}

function number(row: TextRow, name: string): number {
  return Number(column(row, name))
}

function flag(row: TextRow, name: string): boolean {
  return column(row, name) === 't'
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000
}
