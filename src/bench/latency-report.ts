import { environmentLine } from './claim-report.js'
import { type LatencyBenchResult, slotName } from './latency-bench.js'
import { formatted, markdownTable, type TextTable, verdict } from './text-table.js'

const PERCENTILES = ['p50', 'p95', 'p99', 'max'] as const

export function latencyTable({ results }: LatencyBenchResult): TextTable {
  return {
    words: 1,
    titles: ['wake-up', 'samples', ...PERCENTILES.map((name) => `${name} (ms)`), 'with the commit p50', 'p99'],
    rows: results.map(({ wakeUp, samples, commitToStartMs, confirmationToStartMs }) => [
      wakeUp,
      formatted(samples, 0),
      ...PERCENTILES.map((name) => formatted(confirmationToStartMs[name], 2)),
      formatted(commitToStartMs.p50, 2),
      formatted(commitToStartMs.p99, 2),
    ]),
  }
}

export function slotTable({ slots }: LatencyBenchResult): TextTable {
  return {
    words: 1,
    titles: ['from an end to the next start', 'samples', ...PERCENTILES.map((name) => `${name} (ms)`)],
    rows: slots.map((slot) => [
      slotName(slot),
      formatted(slot.samples, 0),
      ...PERCENTILES.map((name) => formatted(slot.endToStartMs[name], 2)),
    ]),
  }
}

export function latencyTargetTable({ targets }: LatencyBenchResult): TextTable {
  return {
    words: 2,
    titles: ['measured', 'percentile', 'ms', 'target', ''],
    rows: targets.map(({ measured, percentile, ms, mostMs, met }) => [
      measured,
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
${markdownTable(latencyTable(result))}
${markdownTable(slotTable(result))}`
}
