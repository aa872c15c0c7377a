import { ShutdownError } from '../errors.js'

/** How long aborted handlers may take to clean up. */
const ABORT_GRACE_MS = 500

/** How long a claim that was under way is waited for: the longest wait for a lock, and some. */
const CLAIM_WAIT_MS = 5_000

/** How long the last outcomes may take to be written. What is not written is run again when its lease has expired. */
const FLUSH_WAIT_MS = 5_000

/** How long the last numbers may take to be written; a part of the time for closing. */
export const LAST_FLUSH_WAIT_MS = 1_000

/** How long the connections may take to close. */
export const CLOSE_WAIT_MS = 2_000

export interface ShutdownParts {
  readonly shutdownTimeoutMs: number
  /** Sends no further claim; resolves when none is under way. */
  stopClaiming(): Promise<void>
  /** Resolves when no handler runs. */
  idle(): Promise<void>
  abort(reason: Error): void
  /** Gives back what did not end; answers how many jobs. */
  abandon(): number
  /** Writes what is left to settle; answers how many settlements could not be written before `signal` aborted. */
  drain(signal: AbortSignal): Promise<number>
  /** Stops heartbeats and closes the connections. */
  close(): Promise<void>
}

export interface ShutdownReport {
  /** Jobs whose handlers did not end in time. They were given back, and may still be running here. */
  readonly abandoned: number
  /** Outcomes that could not be written. These jobs run again when their leases have expired. */
  readonly unsettled: number
}

/**
 * Stop claiming → let handlers finish → abort them → give back what is left → write the outcomes → close.
 *
 * Heartbeats go on until the last outcome is written, so nothing is reclaimed meanwhile. Every wait is bounded, so this
 * always ends, whatever the handlers and the database do.
 */
export async function shutDown(parts: ShutdownParts): Promise<ShutdownReport> {
  const claiming = parts.stopClaiming()
  let abandoned = 0
  if (!(await within(parts.shutdownTimeoutMs, () => parts.idle()))) {
    parts.abort(new ShutdownError())
    if (!(await within(ABORT_GRACE_MS, () => parts.idle()))) abandoned = parts.abandon()
  }
  await within(CLAIM_WAIT_MS, () => claiming)
  let unsettled = 0
  await within(FLUSH_WAIT_MS, async (signal) => {
    unsettled = await parts.drain(signal)
  })
  await within(CLOSE_WAIT_MS, () => parts.close())
  return { abandoned, unsettled }
}

/**
 * Whether `action` succeeded within `ms`. It is told when the time is over, and need not be waited for any longer. What
 * fails during a stop is not worth failing the stop for.
 */
export async function within(ms: number, action: (timeIsOver: AbortSignal) => Promise<void>): Promise<boolean> {
  const timeIsOver = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => {
      resolve(false)
      timeIsOver.abort()
    }, ms)
  })
  try {
    const ended = action(timeIsOver.signal).then(
      () => true,
      () => false,
    )
    return await Promise.race([ended, timeout])
  } finally {
    clearTimeout(timer)
  }
}
