import type { Connection } from './connect.js'
import { CommandError, causesOf, EXIT, failureOf, Interruption } from './exit-codes.js'

/**
 * What the database refused, in words of the person at the terminal: where it was and what to do about it. Anything
 * that is not about getting in, or not known, is given back as it is.
 */
export function explained(error: unknown, connection: Connection): unknown {
  if (error instanceof Interruption || error instanceof CommandError) return error
  const { exitCode } = failureOf(error)
  const causes = causesOf(error)
  const coded = (pattern: RegExp) => causes.find((cause) => pattern.test(codeOf(cause)))
  const told = (code: CommandError['exitCode'], text: string) => new CommandError(code, text, { cause: error })
  const { description } = connection
  if (causes.some(isPasswordMissing)) {
    return told(EXIT.noPermission, `the server asks for a password and the URL has none: ${description}`)
  }
  const login = coded(/^28...$/)
  if (login)
    return told(EXIT.noPermission, `cannot log in to ${description}: ${textOf(login)}; check user and password`)
  const database = coded(/^3D000$/)
  if (database) {
    const name = nameIn(textOf(database)) ?? 'NAME'
    return told(EXIT.configuration, `${textOf(database)} at ${description}; create it: createdb ${name}`)
  }
  const denied = coded(/^42501$/)
  if (denied) return told(EXIT.noPermission, `${textOf(denied)} at ${description}; ${grantFor(textOf(denied))}`)
  if (exitCode !== EXIT.unavailable) return error
  return told(exitCode, `cannot connect to ${description}: ${failureOf(error).message}; check that address`)
}

/** node-postgres's own words for a server that wants a password where none was given. */
function isPasswordMissing(error: unknown): boolean {
  return /^SASL: .*password must be a (non-empty )?string/.test(textOf(error))
}

/** "permission denied for database x" is the one that a first migration meets: it creates a schema. */
function grantFor(message: string): string {
  const name = /database/.test(message) ? nameIn(message) : undefined
  const grant = name === undefined ? 'the role lacks a grant' : `grant create on database ${name} to the role`
  return `${grant}; see docs/operations.md`
}

/** The name that the server's message is about, quoted or at its end. */
function nameIn(message: string): string | undefined {
  return /["«„“](.+?)["»“”]/.exec(message)?.[1] ?? /database (\S+)$/.exec(message)?.[1]
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : ''
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
