import type { HandlerStart } from '../workload/comparison.js'
import type { WorkerProgress } from '../workload/protocol.js'

/** When the handler of each job started and ended, as the worker processes report it. */
export class HandlerStarts {
  readonly #expected: number
  readonly #starts = new Map<number, HandlerStart>()
  readonly complete: Promise<void>
  #completed: () => void = () => {}

  constructor(expected: number) {
    this.#expected = expected
    this.complete = new Promise((resolve) => {
      this.#completed = resolve
    })
  }

  get all(): readonly HandlerStart[] {
    return [...this.#starts.values()]
  }

  add({ starts }: WorkerProgress): void {
    for (const start of starts) this.#starts.set(start.index, start)
    if (this.#starts.size === this.#expected) this.#completed()
  }

  startedMs(index: number): number {
    const start = this.#starts.get(index)
    if (start === undefined) throw new RangeError(`expected a start of job ${index}`)
    return start.startedMs
  }
}
