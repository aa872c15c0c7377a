import { ConfigurationError } from './errors.js'
import { NAME_BYTES_MAX } from './limits.js'

/** Characters of a refused value that are repeated in the error about it. */
const SHOWN_LENGTH_MAX = 80

/** A bounded, one-line picture of any value for an error's text. Never throws, whatever the value does when read. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > SHOWN_LENGTH_MAX ? `${value.slice(0, SHOWN_LENGTH_MAX)}…` : value)
    case 'bigint':
      return value < 10n ** 40n && value > -(10n ** 40n) ? `${value}n` : 'a bigint of more than 40 digits'
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'function':
      return 'a function'
    case 'symbol':
      return 'a symbol'
    case 'object':
      return describeObject(value)
    default:
      return String(value)
  }
}

function describeObject(value: object | null): string {
  if (value === null) return 'null'
  try {
    if (Array.isArray(value)) return `an array of ${value.length}`
    if (value instanceof Date)
      return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`
    const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
    if (typeof name !== 'string' || name === 'Object' || name === '') return 'an object'
    return `an object of class ${name.slice(0, SHOWN_LENGTH_MAX)}`
  } catch {
    return 'an object that cannot be read'
  }
}

/** The one sentence for a refused value. The remedy is added where the expectation does not already say it. */
export function expected(name: string, what: string, value: unknown, remedy?: string): ConfigurationError {
  const sentence = `expected ${name} to be ${what}, got ${describeValue(value)}`
  return new ConfigurationError(remedy === undefined ? sentence : `${sentence}; ${remedy}`)
}

/**
 * Refuses option names that nobody reads: a misspelt option that is silently ignored is found in production.
 * `what` names the receiver, as in "defineJob".
 */
export function checkKnownOptions(what: string, given: unknown, known: readonly string[]): asserts given is object {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw expected(`the options of ${what}`, 'an object', given)
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    const nearest = nearestName(name, known)
    const remedy = nearest ? `did you mean ${nearest}?` : `the options are ${known.join(', ')}`
    throw new ConfigurationError(`unknown option ${describeValue(name)} of ${what}; ${remedy}`)
  }
}

/** An integer within bounds. */
export function integerOption(
  name: string,
  value: unknown,
  bounds: { readonly min: number; readonly max: number },
): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= bounds.min && value <= bounds.max) {
    return value + 0 // -0 becomes 0
  }
  throw expected(name, `an integer from ${bounds.min} to ${bounds.max}`, value)
}

/** A finite number within bounds. */
export function numberOption(
  name: string,
  value: unknown,
  bounds: { readonly min: number; readonly max: number },
): number {
  if (typeof value === 'number' && value >= bounds.min && value <= bounds.max) return value
  throw expected(name, `a number from ${bounds.min} to ${bounds.max}`, value)
}

/** One of a closed set of words. */
export function choiceOption<const Choice extends string>(
  name: string,
  value: unknown,
  choices: readonly Choice[],
): Choice {
  const choice = choices.find((candidate) => candidate === value)
  if (choice !== undefined) return choice
  throw expected(name, `one of ${choices.map((word) => `'${word}'`).join(', ')}`, value)
}

/**
 * The name of a tenant, a queue or a kind. It is data and may contain anything that PostgreSQL's text can carry
 * exactly: no NUL, and no lone surrogate, which UTF-8 cannot express.
 */
export function nameOption(name: string, value: unknown): string {
  const what = `a string of 1 to ${NAME_BYTES_MAX} bytes in UTF-8`
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > NAME_BYTES_MAX) {
    throw expected(name, what, value)
  }
  if (value.includes('\0')) throw expected(name, 'a string without NUL characters', value)
  if (/\p{Surrogate}/u.test(value)) throw expected(name, 'well-formed text without lone surrogates', value)
  return value
}

/** The known name that a misspelling most likely stands for, if one is near enough to suggest. */
function nearestName(given: string, known: readonly string[]): string | undefined {
  const tolerance = Math.max(2, Math.floor(given.length / 4))
  if (given.length > SHOWN_LENGTH_MAX) return undefined // the distance costs the product of the lengths
  const ranked = known
    .map((name) => ({ name, distance: editDistance(given.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const [nearest] = ranked
  return nearest && nearest.distance <= tolerance && nearest.distance < nearest.name.length ? nearest.name : undefined
}

/** Levenshtein distance: insertions, deletions and substitutions that turn `from` into `to`. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const substituted = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min(substituted, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
