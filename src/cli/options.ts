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

export const schemaOption = () =>
  new Option('--schema <name>', `schema of the tables (default: $TENANTRY_SCHEMA, else ${DEFAULT_SCHEMA})`)

export const jsonOption = () => new Option('--json', 'print JSON to stdout')
