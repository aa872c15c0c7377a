import { environmentLine } from './claim-report.js'
import type { LatencyBenchResult } from './latency-bench.js'
import { formatted, markdownTable, type TextTable, verdict } from './text-table.js'

export function latencyTable({ results }: LatencyBenchResult): TextTable {
  const percentiles = ['p50', 'p95', 'p99', 'max'] as const
  return {
    words: 1,
    titles: ['wake-up', 'samples', ...percentiles.map((name) => `${name} (ms)`), 'with the commit p50', 'p99'],
    rows: results.map(({ wakeUp, samples, commitToStartMs, confirmationToStartMs }) => [
      wakeUp,
      formatted(samples, 0),
      ...percentiles.map((name) => formatted(confirmationToStartMs[name], 2)),
      formatted(commitToStartMs.p50, 2),
      formatted(commitToStartMs.p99, 2),
    ]),
  }
}

export function latencyTargetTable({ targets }: LatencyBenchResult): TextTable {
  return {
    words: 2,
    titles: ['wake-up', 'percentile', 'ms', 'target', ''],
    rows: targets.map(({ wakeUp, percentile, ms, mostMs, met }) => [
      wakeUp,
      percentile,
      formatted(ms, 2),
      `≤ ${mostMs}`,
      verdict(met),
    ]),
  }
}

/** The file that stands beside the JSON, with the command that made both. */
export function latencyMarkdown(result: LatencyBenchResult, command: string): string {
  const { environment } = result
  return `Made by \`${command}\` at ${environment.measuredAt}. Do not edit.
${environmentLine(environment)}.

${markdownTable(latencyTargetTable(result))}
${markdownTable(latencyTable(result))}`
}
