import { causesOf, classify, isLoginRefused, isNoSuchDatabase, isPrivilegeMissing } from '../driver/pg-errors.js'
import { type ErrorCode, TenantryError } from '../errors.js'
import { WorkloadError } from '../workload/workload.js'

/** How the process ends. The numbers from 69 up are those of BSD's sysexits.h; 130 and 143 are 128 + signal. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  unavailable: 69,
  noPermission: 77,
  configuration: 78,
  interrupted: 130,
  terminated: 143,
} as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Something that the person at the terminal can put right. Its message stands alone: no stack trace is shown. */
export class CommandError extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandError'
    this.exitCode = exitCode
  }
}

/** Ctrl-C or a polite kill: not a failure, and nothing more needs to be said about it. */
export class Interruption extends CommandError {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated, `stopped by ${signal}`)
    this.name = 'Interruption'
  }
}

const BY_ERROR_CODE: Partial<Record<ErrorCode, ExitCode>> = {
  CONFIGURATION: EXIT.configuration,
  MIGRATION_REQUIRED: EXIT.configuration,
  DATABASE_UNREACHABLE: EXIT.unavailable,
}

/** What went wrong, for a shell script and for a person. */
export interface Failure {
  readonly exitCode: ExitCode
  readonly message: string
  /** Nobody foresaw this error, so a person may want to report it. */
  readonly unexpected: boolean
}

/** Looks along the causes for the error that decides: the database's own code says more than the library's around it. */
export function failureOf(error: unknown): Failure {
  const message = messageOf(error)
  if (error instanceof CommandError) return { exitCode: error.exitCode, message, unexpected: false }
  const exitCode = byDatabase(error)
  if (error instanceof TenantryError) {
    return { exitCode: exitCode ?? BY_ERROR_CODE[error.code] ?? EXIT.failure, message, unexpected: false }
  }
  if (error instanceof WorkloadError) return { exitCode: EXIT.failure, message, unexpected: false }
  return { exitCode: exitCode ?? EXIT.failure, message, unexpected: exitCode === undefined }
}

function byDatabase(error: unknown): ExitCode | undefined {
  if (classify(error) === 'unreachable') return EXIT.unavailable
  if (isLoginRefused(error) || isPrivilegeMissing(error)) return EXIT.noPermission
  return isNoSuchDatabase(error) ? EXIT.configuration : undefined
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  // Node's AggregateError of failed connection attempts has no text of its own.
  const parts = causesOf(error).flatMap((cause) => (cause instanceof Error && cause.message ? [cause.message] : []))
  return [...new Set(parts)].join('; ') || error.name
}
