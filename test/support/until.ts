import { delay, systemClock } from '../../src/clock.js'

export interface UntilOptions {
  /** Completes the sentence "gave up waiting until …". */
  readonly until: string
  /** Generous: a test never fails because the machine is slow. */
  readonly deadlineMs?: number
}

/** Asks again and again until the answer is truthy, and answers with it. The only place where a test waits by time. */
export async function until<T>(condition: () => T | Promise<T>, options: UntilOptions): Promise<NonNullable<T>> {
  const deadline = systemClock.monotonicMs() + (options.deadlineMs ?? 30_000)
  for (;;) {
    const answer = await condition()
    if (answer) return answer
    if (systemClock.monotonicMs() > deadline) throw new Error(`gave up waiting until ${options.until}`)
    await delay(10)
  }
}
