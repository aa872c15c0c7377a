/** What Tenantry writes to. `console`, pino and winston all have this shape. Payloads are never logged. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** One line of JSON per event, handed to `write`: `info` and above unless told otherwise. */
export function jsonLogger(write: (line: string) => void, now: () => Date, minimum: keyof Logger = 'info'): Logger {
  const levels = ['debug', 'info', 'warn', 'error'] as const
  const log =
    (level: keyof Logger) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      if (levels.indexOf(level) < levels.indexOf(minimum)) return
      write(`${JSON.stringify({ time: now().toISOString(), level, message, ...fields })}\n`)
    }
  return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
}
