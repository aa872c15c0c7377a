/**
 * Local time, for timers and measurements only. Whether a job is due or a lease has run out is decided by the
 * database's clock alone, so a machine whose wall clock is wrong does no harm.
 */
export interface Clock {
  /** Monotonic milliseconds since an arbitrary origin. */
  monotonicMs(): number
  /** Wall-clock time, for log lines and reports. */
  wallClock(): Date
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallClock: () => new Date(),
}

/**
 * Monotonic milliseconds, to the nanosecond, on the clock that all processes of this machine share (CLOCK_MONOTONIC on
 * Linux, the uptime on macOS): what one process started can be ordered against what another did.
 */
export function machineClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Resolves after `ms`, or at once when `signal` aborts. Never rejects; the caller looks at the signal. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const finish = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', finish, { once: true })
  })
}

/** Resolves when `signal` aborts, at once if it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
