import { expect, it } from 'vitest'
import type { Comparison, StrategyFigures } from '../workload/comparison.js'
import { comparisonReport, comparisonSummary } from './comparison-report.js'
import { colorsFor } from './output.js'

const colors = colorsFor({ write: () => true }, {})
const wait = { mean: 1_636.24, p50: 1_632, p95: 1_665.7, p99: 1_673.4, max: 1_673.4 }
const fifo: StrategyFigures = {
  lastQuietStart: 1_050,
  quietWaitMs: wait,
  noisyWaitMs: null,
  claimMs: { p50: 1.5, p95: 2, p99: 3 },
  jobsPerSecond: 623.6,
  doubleClaims: 0,
}
const fair = { ...fifo, lastQuietStart: 55, quietWaitMs: { ...wait, p95: 124.04 } }
const comparison: Comparison = { fifo, fair }

it('sets both strategies side by side, with a dash where there is nothing to measure', () => {
  const lines = comparisonReport(comparison, { colors, startOrder: true }).split('\n')
  expect(lines[0]).toMatch(/^ +FIFO +fair$/)
  expect(lines).toContainEqual(expect.stringMatching(/^throughput \(jobs\/s\) +624 +624$/))
  expect(lines).toContainEqual(expect.stringMatching(/^last quiet job started as number +1,050 +55$/))
  expect(lines).toContainEqual(expect.stringMatching(/^quiet tenants wait, mean \(ms\) +1,636\.2 +1,636\.2$/))
  expect(lines).toContainEqual(expect.stringMatching(/^noisy tenants wait, max \(ms\) +- +-$/))
})

it('leaves the position out when jobs were not enqueued at one moment', () => {
  expect(comparisonReport(comparison, { colors, startOrder: false })).not.toContain('started as number')
})

it('sums up in one sentence, or not at all without quiet jobs', () => {
  expect(comparisonSummary(comparison)).toBe(
    "95 % of the quiet tenants' jobs started within 124.0 ms instead of 1,665.7 ms.",
  )
  expect(comparisonSummary({ fifo, fair: { ...fair, quietWaitMs: null } })).toBeUndefined()
})
