import { type Comparison, countLost, figuresOf, type StrategyFigures } from './comparison.js'
import { type RunOptions, runWorkload } from './run.js'

export type ComparedStrategy = RunOptions['strategy']

export interface CompareOptions extends Omit<RunOptions, 'strategy' | 'onEnded'> {
  /** Told before a strategy is run; what it returns is called with the positions of the jobs that have ended. */
  readonly onRun?: (strategy: ComparedStrategy) => RunOptions['onEnded']
}

export interface CompareResult {
  readonly comparison: Comparison
  /** What must never happen, as sentences. Empty when all went well. */
  readonly faults: readonly string[]
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
  const fifo = await figures('fifo')
  const fair = await figures('fair')
  return { comparison: { fifo, fair }, faults }
}
