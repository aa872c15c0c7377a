import type { Remedy } from '../why.js'

/** A row of a check's query, every column as text. */
export type Row = Readonly<Record<string, string | null>>

/** One thing that can be wrong. Its query answers with a row for each case, at most 20, and with none when all is well. */
export interface Check {
  /** Stable, for machines. */
  readonly name: string
  /** What is true when nothing is wrong. */
  readonly title: string
  /** The name of its statement in sql/queries/diagnosis.sql. */
  readonly query: DoctorQuery
  /** What is given to it. */
  readonly values?: readonly number[]
  describe(row: Row): string
  remedy(row: Row): Remedy
}

export type DoctorQuery =
  | 'doctor_starvation'
  | 'doctor_parked'
  | 'doctor_signals'
  | 'doctor_leases'
  | 'doctor_reclaim'
  | 'doctor_limits'
  | 'doctor_keys'
  | 'doctor_workers'
  | 'doctor_horizon'
  | 'doctor_locks'
  | 'doctor_vacuum'
  | 'doctor_history'
  | 'doctor_objectives'

/** What a check has found. */
export interface Examined {
  readonly check: string
  readonly title: string
  readonly verdict: 'ok' | 'wrong' | 'skipped'
  /** What is wrong, case by case, or why it could not be looked at. */
  readonly findings: readonly string[]
  readonly remedies: readonly Remedy[]
}

export function examined({ name, title, describe, remedy }: Check, rows: readonly Row[]): Examined {
  const remedies = new Map(rows.map((row) => [remedy(row).sentence, remedy(row)]))
  const verdict = rows.length === 0 ? 'ok' : 'wrong'
  return { check: name, title, verdict, findings: rows.map(describe), remedies: [...remedies.values()] }
}

export function skipped({ name, title }: Pick<Check, 'name' | 'title'>, reason: string): Examined {
  return { check: name, title, verdict: 'skipped', findings: [reason], remedies: [] }
}

export function text(row: Row, name: string): string {
  return row[name] ?? ''
}

export function number(row: Row, name: string): number {
  return Number(row[name] ?? Number.NaN)
}
