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
  const database = causesOf(error).find((cause) => byDatabaseCode(cause) !== undefined)
  const exitCode = database ? byDatabaseCode(database) : undefined
  if (error instanceof TenantryError) {
    return { exitCode: exitCode ?? BY_ERROR_CODE[error.code] ?? EXIT.failure, message, unexpected: false }
  }
  if (error instanceof WorkloadError) return { exitCode: EXIT.failure, message, unexpected: false }
  return { exitCode: exitCode ?? EXIT.failure, message, unexpected: exitCode === undefined }
}

const UNREACHABLE =
  /^(08...|57P0[123]|53300|ECONN(REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|E(HOST|NET)UNREACH|ETIMEDOUT|EPIPE)$/
const NO_PERMISSION = /^(28...|42501)$/
const NO_SUCH_DATABASE = '3D000'

function byDatabaseCode(error: unknown): ExitCode | undefined {
  const { code, syscall } = (error ?? {}) as { readonly code?: unknown; readonly syscall?: unknown }
  if (typeof code !== 'string') return undefined
  // The Unix socket of a server that does not run.
  if (code === 'ENOENT' && syscall === 'connect') return EXIT.unavailable
  if (UNREACHABLE.test(code)) return EXIT.unavailable
  if (NO_PERMISSION.test(code)) return EXIT.noPermission
  return code === NO_SUCH_DATABASE ? EXIT.configuration : undefined
}

const CAUSES_MAX = 10

/** The error, its cause, the cause of that, and the parts of aggregates (Node reports one for each address it tried). */
export function causesOf(error: unknown): readonly unknown[] {
  const found: unknown[] = []
  let next: unknown[] = [error]
  while (next.length > 0 && found.length < CAUSES_MAX) {
    found.push(...next)
    next = next.flatMap((each) => {
      if (!(each instanceof Error)) return []
      const parts: unknown[] = each instanceof AggregateError ? each.errors : []
      return each.cause === undefined ? parts : [...parts, each.cause]
    })
  }
  return found
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  // Node's AggregateError of failed connection attempts has no text of its own.
  const parts = causesOf(error).flatMap((cause) => (cause instanceof Error && cause.message ? [cause.message] : []))
  return [...new Set(parts)].join('; ') || error.name
}
