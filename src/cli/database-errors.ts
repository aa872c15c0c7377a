import {
  isLoginRefused,
  isNoSuchDatabase,
  isPasswordMissing,
  isPrivilegeMissing,
  serverErrorOf,
} from '../driver/pg-errors.js'
import type { Connection } from './connect.js'
import { CommandError, EXIT, failureOf, Interruption } from './exit-codes.js'

/**
 * What the database refused, in words of the person at the terminal: where it was and what to do about it. Anything
 * that is not about getting in, or not known, is given back as it is.
 */
export function explained(error: unknown, connection: Connection): unknown {
  if (error instanceof Interruption || error instanceof CommandError) return error
  const told = (code: CommandError['exitCode'], text: string) => new CommandError(code, text, { cause: error })
  const { description } = connection
  const text = textOf(serverErrorOf(error))
  if (isPasswordMissing(error)) {
    return told(EXIT.noPermission, `the server asks for a password and the URL has none: ${description}`)
  }
  if (isLoginRefused(error)) {
    return told(EXIT.noPermission, `cannot log in to ${description}: ${text}; check user and password`)
  }
  if (isNoSuchDatabase(error)) {
    return told(EXIT.configuration, `${text} at ${description}; create it: createdb ${nameIn(text) ?? 'NAME'}`)
  }
  if (isPrivilegeMissing(error)) return told(EXIT.noPermission, `${text} at ${description}; ${grantFor(text)}`)
  const { exitCode, message } = failureOf(error)
  if (exitCode !== EXIT.unavailable) return error
  return told(exitCode, `cannot connect to ${description}: ${message}; check that address`)
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

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
