import { environmentLine } from './claim-report.js'
import type { NumbersBenchResult } from './numbers-bench.js'
import { formatted, markdownTable, type TextTable, verdict } from './text-table.js'

export function numbersTable({ results }: NumbersBenchResult): TextTable {
  return {
    words: 1,
    titles: ['numbers', 'runs', 'jobs', 'server µs/job', 'min', 'max', 'buffers/job', 'WAL bytes/job', 'jobs/s'],
    rows: results.map(
      ({ numbers, runs, jobs, serverUsPerJob, spread, buffersPerJob, walBytesPerJob, jobsPerSecond }) => [
        numbers ? 'with' : 'without',
        formatted(runs, 0),
        formatted(jobs, 0),
        formatted(serverUsPerJob, 1),
        formatted(spread?.min, 1),
        formatted(spread?.max, 1),
        formatted(buffersPerJob, 2),
        formatted(walBytesPerJob, 0),
        formatted(jobsPerSecond, 0),
      ],
    ),
  }
}

export function numbersTargetTable({ scenario, ratio, ratioOfPairs, most, met }: NumbersBenchResult): TextTable {
  return {
    words: 1,
    titles: ['scenario', 'server CPU, with ÷ without', 'median of the pairs', 'target', ''],
    rows: [[scenario, formatted(ratio, 3), formatted(ratioOfPairs, 3), `≤ ${most}`, verdict(met)]],
  }
}

/** The file that stands beside the JSON, with the command that made both. */
export function numbersMarkdown(result: NumbersBenchResult, command: string): string {
  const { environment } = result
  return `Made by \`${command}\` at ${environment.measuredAt}. Do not edit.
${environmentLine(environment)}.

${markdownTable(numbersTargetTable(result))}
${markdownTable(numbersTable(result))}`
}
