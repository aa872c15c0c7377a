import { Heap } from '../scheduler/heap.js'
import type { WorkloadJob } from '../workload/workload.js'
import type { Entitlement } from './entitlement.js'

/** Decides who is next. Jobs are named by their place in the workload. */
export interface Order {
  arrive(place: number, nowMs: number): void
  /** Starts up to so many. */
  claim(count: number, nowMs: number): readonly number[]
  end(place: number, nowMs: number): void
  /** When something changes by time alone. */
  nextChangeMs(nowMs: number): number
}

export interface RunOptions {
  readonly slots: number
  readonly batch: number
  /** What the run of a job costs: 1, or its seconds. */
  readonly serviceOf: (job: WorkloadJob) => number
  /** Told of all that arrives and of each service. */
  readonly entitlement: Entitlement
}

export interface RunOutcome {
  /** From arrival to start, by the place of the job; -1 when it never started. */
  readonly waitMs: Float64Array
  /** By tenant, in the first half of all work. */
  readonly received: ReadonlyMap<string, number>
  readonly dispatches: number
  readonly endMs: number
}

interface Running {
  readonly place: number
  readonly endMs: number
  slot: number
}

/** Runs a workload on slots that are all alike, on virtual time: from one arrival or end to the next. */
export function run(jobs: readonly WorkloadJob[], order: Order, options: RunOptions): RunOutcome {
  const waitMs = new Float64Array(jobs.length).fill(-1)
  const running = new Heap<Running>(
    (one, other) => one.endMs < other.endMs || (one.endMs === other.endMs && one.place < other.place),
  )
  const account = new Account(options, jobs)
  let [arrived, dispatches, nowMs] = [0, 0, 0]
  for (;;) {
    for (let next = running.first; next && next.endMs <= nowMs; next = running.first) {
      running.remove(next)
      order.end(next.place, nowMs)
    }
    for (let job = jobs[arrived]; job && job.dueMs <= nowMs; job = jobs[arrived]) {
      order.arrive(arrived, nowMs)
      account.arrive(job)
      arrived += 1
    }
    while (running.size < options.slots) {
      const asked = Math.min(options.batch, options.slots - running.size)
      const started = order.claim(asked, nowMs)
      for (const place of started) {
        const job = jobs[place] as WorkloadJob
        waitMs[place] = nowMs - job.dueMs
        account.start(job)
        running.push({ place, endMs: nowMs + job.durationMs, slot: -1 })
      }
      dispatches += started.length
      if (started.length < asked) break
    }
    const changeMs =
      account.waiting > 0 && running.size < options.slots ? order.nextChangeMs(nowMs) : Number.POSITIVE_INFINITY
    const nextMs = Math.min(
      running.first?.endMs ?? Number.POSITIVE_INFINITY,
      jobs[arrived]?.dueMs ?? Number.POSITIVE_INFINITY,
      changeMs,
    )
    if (nextMs === Number.POSITIVE_INFINITY) return { waitMs, received: account.received, dispatches, endMs: nowMs }
    nowMs = nextMs
  }
}

/** What waits, and what was received and entitled to in the first half of all work: in the end everybody has got everything. */
class Account {
  readonly received = new Map<string, number>()
  readonly #options: RunOptions
  readonly #half: number
  #work = 0
  waiting = 0

  constructor(options: RunOptions, jobs: readonly WorkloadJob[]) {
    this.#options = options
    this.#half = jobs.reduce((sum, job) => sum + options.serviceOf(job), 0) / 2
  }

  arrive(job: WorkloadJob): void {
    this.waiting += 1
    if (this.#work < this.#half) this.#options.entitlement.arrive(job.tenant, this.#options.serviceOf(job))
  }

  start(job: WorkloadJob): void {
    this.waiting -= 1
    if (this.#work >= this.#half) return
    const service = this.#options.serviceOf(job)
    this.#work += service
    this.received.set(job.tenant, (this.received.get(job.tenant) ?? 0) + service)
    this.#options.entitlement.serve(service)
  }
}
