import { InvalidArgumentError, Option } from 'commander'
import { DEFAULT_SCHEMA } from '../config.js'

/** A whole number in a range, for commander: the refusal names the value and what would do. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
  }
}

/** A number above zero. */
export function positiveNumber(text: string): number {
  const value = /^\d+(\.\d+)?(e\d+)?$/i.test(text) ? Number(text) : Number.NaN
  if (value > 0 && Number.isFinite(value)) return value
  throw new InvalidArgumentError('Expected a number above zero.')
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `250ms`, `1.5s`, `5m`, `2h` or `1d` in milliseconds; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  const unitMs = UNIT_MS[unit]
  return count === undefined || unitMs === undefined ? undefined : Number(count) * unitMs
}

/** A duration in a range, for commander, in whole milliseconds. */
export function duration(leastMs: number, mostMs: number): (text: string) => number {
  return (text) => {
    const value = Math.round(durationMs(text) ?? Number.NaN)
    if (value >= leastMs && value <= mostMs) return value
    throw new InvalidArgumentError(
      `Expected a duration from ${inWords(leastMs)} to ${inWords(mostMs)}, such as 30s or 5m.`,
    )
  }
}

/** In the largest unit that gives a whole number, as `durationMs` reads it. */
export function inWords(ms: number): string {
  for (const [unit, unitMs] of Object.entries(UNIT_MS).reverse()) {
    if (ms >= unitMs && Number.isInteger(ms / unitMs)) return `${ms / unitMs}${unit}`
  }
  return `${ms}ms`
}

export const schemaOption = () =>
  new Option('--schema <name>', `schema of the tables (default: $TENANTRY_SCHEMA, else ${DEFAULT_SCHEMA})`)

export const jsonOption = () => new Option('--json', 'print JSON to stdout')
