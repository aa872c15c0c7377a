import { type Comparison, countLost, figuresOf, type StrategyFigures } from './comparison.js'
import { type RunOptions, runWorkload } from './run.js'
import type { Workload } from './workload.js'

export type ComparedStrategy = RunOptions['strategy']

export interface CompareOptions extends Omit<RunOptions, 'strategy' | 'queue' | 'onEnded'> {
  /** Told before a strategy is run; what it returns is called with the positions of the jobs that have ended. */
  readonly onRun?: (strategy: ComparedStrategy) => RunOptions['onEnded']
}

export interface CompareResult {
  readonly comparison: Comparison
  /** What must never happen, as sentences. Empty when all went well. */
  readonly faults: readonly string[]
}

/** Enough for every statement to have run, few enough to take no time. */
const WARM_UP: Workload = {
  jobs: Array.from({ length: 50 }, (_, index) => ({ tenant: `tenant-${index % 5}`, dueMs: 0, durationMs: 1 })),
  noisyTenants: new Set(),
}

/** Nothing of it is counted: only the first strategy would meet a server that has just started, with cold caches. */
async function warmUp(options: Omit<CompareOptions, 'onRun'>): Promise<void> {
  for (const strategy of ['fifo', 'fair'] as const) {
    await runWorkload({ ...options, workload: WARM_UP, strategy, queue: `warm-up-${strategy}` })
  }
}

/** Runs one workload through FIFO and then through fair, each in a queue of its own. */
export async function compareStrategies({ onRun, ...options }: CompareOptions): Promise<CompareResult> {
  const faults: string[] = []
  const figures = async (strategy: ComparedStrategy): Promise<StrategyFigures> => {
    const onEnded = onRun?.(strategy)
    const record = await runWorkload({ ...options, strategy, ...(onEnded && { onEnded }) })
    const found = figuresOf(options.workload, record)
    const lost = countLost(options.workload, record)
    if (lost > 0) faults.push(`${strategy} lost jobs: ${lost} never started`)
    if (found.doubleClaims > 0) faults.push(`${strategy} ran jobs twice: ${found.doubleClaims} starts too many`)
    return found
  }
  await warmUp(options)
  const fifo = await figures('fifo')
  const fair = await figures('fair')
  return { comparison: { fifo, fair }, faults }
}
