/** What is expected of a job of which nothing is known: a queue that charges time has to charge something at first. */
export const SECONDS_UNKNOWN = 1

/** What is charged at least: a turn that costs nothing would be followed by another one for ever. */
export const SECONDS_LEAST = 0.001

/** What each job that ran leaves of an estimate: ten jobs after a change, nine tenths of it are learned. */
const KEPT_BY_A_JOB = 0.8

/** Jobs that ended, taken together. */
export interface Measured {
  readonly jobs: number
  readonly seconds: number
}

/** An exponentially weighted mean; several jobs at once count as one after the other would, had all the same length. */
export function learned(estimate: number | undefined, { jobs, seconds }: Measured): number {
  const mean = seconds / jobs
  if (estimate === undefined) return mean
  return estimate + (mean - estimate) * (1 - KEPT_BY_A_JOB ** jobs)
}
