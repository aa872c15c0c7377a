import type { Clock } from '../clock.js'
import type { Job } from '../job/job.js'
import type { Logger } from '../logger.js'
import type { Failure, Outcome } from '../settle/outcome.js'

/** Lines for each kind and level in one interval. When everything fails the first few say why, and a number says how much. */
const LINES_MAX = 5

const INTERVAL_MS = 10_000

/** How much of an error's message a line repeats; the whole is stored with the job. */
const MESSAGE_SHOWN_MAX = 500

interface Interval {
  startedAtMs: number
  lines: number
  unlogged: number
}

/** Says which attempts failed and why: a warning for one that is tried again, an error for a job that is given up. */
export class FailureLog {
  readonly #log: Logger
  readonly #clock: Clock
  readonly #intervals = new Map<string, Interval>()

  constructor(options: { log: Logger; clock: Clock }) {
    this.#log = options.log
    this.#clock = options.clock
  }

  /** For every outcome; those that are no failure are not logged. */
  decided(job: Job, outcome: Outcome): void {
    if (outcome.type === 'retry') {
      this.#write('warn', job, { ...failureFields(outcome.failure), retryInMs: outcome.delayMs })
    } else if (outcome.type === 'discard') {
      this.#write('error', job, failureFields(outcome.failure))
    }
  }

  #write(level: 'warn' | 'error', job: Job, fields: Readonly<Record<string, unknown>>): void {
    const { id: jobId, kind, tenant, attempt, maxAttempts } = job
    const interval = this.#intervalOf(`${level} ${kind}`)
    if (interval.lines >= LINES_MAX) {
      interval.unlogged += 1
      return
    }
    interval.lines += 1
    const { unlogged } = interval
    interval.unlogged = 0
    const text = level === 'warn' ? 'an attempt failed; the job is tried again' : 'a job is discarded'
    const more = unlogged > 0 ? { unlogged } : {}
    this.#log[level](text, { kind, jobId, tenant, attempt, maxAttempts, ...fields, ...more })
  }

  #intervalOf(key: string): Interval {
    const now = this.#clock.monotonicMs()
    const interval = this.#intervals.get(key) ?? { startedAtMs: now, lines: 0, unlogged: 0 }
    this.#intervals.set(key, interval)
    if (now - interval.startedAtMs >= INTERVAL_MS) {
      interval.startedAtMs = now
      interval.lines = 0
    }
    return interval
  }
}

function failureFields({ name, message }: Failure): Readonly<Record<string, unknown>> {
  const shown = message.length > MESSAGE_SHOWN_MAX ? `${message.slice(0, MESSAGE_SHOWN_MAX)}…` : message
  return { error: `${name}: ${shown}` }
}
