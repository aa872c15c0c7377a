/** What a set of measured times looks like. Milliseconds when the times are. */
export interface Distribution {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/**
 * Nearest-rank percentile: the smallest value that at least `percent` % of the values do not exceed. It is always one
 * of the values, never an interpolation between two. `ascending` must be sorted and not empty; 0 < `percent` <= 100.
 */
export function percentile(ascending: Float64Array, percent: number): number {
  // percent * n is exact for whole percents, so that 95 % of 20 values is rank 19 and not, by rounding, 20.
  const rank = Math.ceil((percent * ascending.length) / 100)
  const value = ascending[rank - 1]
  if (value === undefined) {
    throw new RangeError(`expected values and a percentile in (0, 100], got ${ascending.length} values and ${percent}`)
  }
  return value
}

/** Mean, nearest-rank percentiles and maximum; undefined when there are no values. */
export function distributionOf(values: Iterable<number>): Distribution | undefined {
  const ascending = Float64Array.from(values).sort()
  if (ascending.length === 0) return undefined
  return {
    mean: ascending.reduce((sum, value) => sum + value, 0) / ascending.length,
    p50: percentile(ascending, 50),
    p95: percentile(ascending, 95),
    p99: percentile(ascending, 99),
    max: percentile(ascending, 100),
  }
}
