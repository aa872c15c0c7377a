/**
 * Buckets of times on a logarithmic scale, four to a doubling, so that the two ends of one differ by 19 % and its middle is at
 * most 9 % from anything in it, from a millisecond to a day. Averages hide what a queue does to the unlucky; these do not, and
 * those of many workers can be added up. The SQL knows the same scale: see worker_window.
 */
const PER_DOUBLING = 4

/** Its lower end is above a day. Everything longer is counted in it. */
export const BUCKET_MAX = 106

/** The bucket of a time: 0 up to 1 ms, n for those above 2^((n-1)/4) ms up to 2^(n/4) ms. */
export function bucketOf(ms: number): number {
  if (!(ms > 1)) return 0
  return Math.min(BUCKET_MAX, Math.ceil(Math.log2(ms) * PER_DOUBLING))
}

/** What stands for the times in a bucket: its middle on the scale. */
export function middleMs(bucket: number): number {
  return bucket === 0 ? 1 : 2 ** ((bucket - 0.5) / PER_DOUBLING)
}
