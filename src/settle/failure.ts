import { inspect } from 'node:util'
import { ERROR_NAME_MAX, ERROR_TEXT_MAX } from '../limits.js'
import type { Failure } from './outcome.js'

/**
 * Anything can be thrown, and the value that cannot be described is the one that would leave its job running for ever:
 * its failure could not be recorded. So every read of a foreign value is guarded, every text is cut before it is worked
 * on, and what PostgreSQL's text cannot carry is replaced.
 */
export function describeFailure(thrown: unknown): Failure {
  if (!isErrorLike(thrown)) return { name: 'NonError', message: plainText(describeNonError(thrown), ERROR_TEXT_MAX) }
  const name = readText(thrown, 'name') || 'Error'
  const message = readText(thrown, 'message') || readText(thrown, 'code')
  const inner = describeInner(thrown)
  const stack = describeStack(thrown, message)
  return {
    name: plainText(name, ERROR_NAME_MAX),
    message: plainText(inner === '' ? message : `${trimmed(message, ERROR_TEXT_MAX / 2)} ${inner}`, ERROR_TEXT_MAX),
    ...(stack !== '' && { stack: plainText(stack, ERROR_TEXT_MAX) }),
  }
}

/**
 * Text that PostgreSQL and UTF-8 can carry: bounded, NUL and lone surrogates replaced by U+FFFD. Always a copy, because
 * a slice would keep the whole of a 50 MB text in memory for as long as the failure waits to be written.
 */
export function plainText(text: string, lengthMax: number): string {
  const copy = Buffer.from(trimmed(text, lengthMax), 'utf16le').toString('utf16le')
  return copy.replaceAll(/[\0\p{Surrogate}]/gu, '\uFFFD')
}

/** Cuts the text and says how long it was. */
function trimmed(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const note = `… [${text.length} characters]`
  return text.slice(0, lengthMax - note.length) + note
}

/** Inner errors of an AggregateError that are described; the rest are counted. */
const INNER_SHOWN_MAX = 3

/** Causes that are followed: a chain can be a circle. */
const CAUSES_MAX = 5

/** How much of the message of a cause or of an inner error is repeated. */
const RELATED_TEXT_MAX = 300

/** What failed inside an AggregateError; the message of one that Node makes for a failed connection is empty. */
function describeInner(error: object): string {
  const errors = attempt(() => {
    const list = read(error, 'errors')
    return Array.isArray(list) ? { length: list.length, shown: list.slice(0, INNER_SHOWN_MAX) } : undefined
  }, undefined)
  if (errors === undefined || errors.length === 0) return ''
  const shown = errors.shown.map(headline).join('; ')
  return `[${errors.length} errors: ${shown}${errors.length > errors.shown.length ? '; …' : ''}]`
}

/** The stack without a second copy of a long message, which would push the frames out, and with its causes. */
function describeStack(error: object, message: string): string {
  const stack = readText(error, 'stack')
  if (stack === '') return ''
  const causes = describeCauses(error)
  return trimmed(shortenMessage(stack, message), ERROR_TEXT_MAX - causes.length) + causes
}

function shortenMessage(stack: string, message: string): string {
  if (message.length <= RELATED_TEXT_MAX) return stack
  const at = stack.indexOf(message)
  if (at === -1) return stack
  return stack.slice(0, at) + trimmed(message, RELATED_TEXT_MAX) + stack.slice(at + message.length)
}

function describeCauses(error: object): string {
  let text = ''
  let cause = read(error, 'cause')
  for (let depth = 0; depth < CAUSES_MAX && cause !== undefined; depth += 1) {
    text += `\ncaused by ${headline(cause)}`
    cause = isErrorLike(cause) ? read(cause, 'cause') : undefined
  }
  return text
}

/** Name and message in one line. */
function headline(value: unknown): string {
  if (!isErrorLike(value)) return trimmed(describeNonError(value), RELATED_TEXT_MAX)
  const name = readText(value, 'name') || 'Error'
  const message = readText(value, 'message') || readText(value, 'code')
  return `${trimmed(name, ERROR_NAME_MAX)}: ${trimmed(message, RELATED_TEXT_MAX)}`
}

function describeNonError(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  if (typeof thrown === 'bigint') return describeBigInt(thrown)
  const shown = attempt(() => inspectBriefly(thrown), 'a value that cannot be inspected')
  return typeof thrown === 'object' && thrown !== null ? shown : `${shown} was thrown, which is no Error`
}

function describeBigInt(thrown: bigint): string {
  // Decimal digits of a huge BigInt take quadratic time.
  const isShort = thrown < 10n ** 100n && thrown > -(10n ** 100n)
  return `${isShort ? `${thrown}n` : 'a very long BigInt'} was thrown, which is no Error`
}

/** Runs no code of the value: neither getters, nor the traps of a Proxy, nor toJSON or a custom inspection. */
function inspectBriefly(value: unknown): string {
  return inspect(value, {
    depth: 2,
    customInspect: false,
    getters: false,
    showProxy: false,
    maxArrayLength: 10,
    maxStringLength: RELATED_TEXT_MAX,
    breakLength: Number.POSITIVE_INFINITY,
  })
}

/** An Error of this or another realm, or what libraries throw in its place: an object with a message. */
function isErrorLike(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return attempt(() => value instanceof Error, false) || typeof read(value, 'message') === 'string'
}

/** A member as text; empty when it is missing or cannot be read. */
function readText(object: object, name: string): string {
  const value = read(object, name)
  if (value === undefined) return ''
  return typeof value === 'string' ? value : attempt(() => inspectBriefly(value), '')
}

function read(object: object, name: string): unknown {
  return attempt(() => Reflect.get(object, name), undefined)
}

function attempt<Result>(action: () => Result, fallback: Result): Result {
  try {
    return action()
  } catch {
    return fallback
  }
}
