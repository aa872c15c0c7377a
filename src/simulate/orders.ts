import type { Job } from '../scheduler/job.js'
import type { Scheduler } from '../scheduler/scheduler.js'
import type { WorkloadJob } from '../workload/workload.js'
import type { Order } from './run.js'

/** The one kind of a simulated job: logs do not name kinds. */
export const SIMULATED_KIND = 'simulated'

/** The order of the scheduler, and so of the database. */
export function fairOrder(scheduler: Scheduler, jobs: readonly WorkloadJob[]): Order {
  const kinds = [SIMULATED_KIND]
  const places = new Map<Job, number>()
  const running = new Map<number, Job>()
  return {
    arrive(place, nowMs) {
      places.set(scheduler.enqueue({ tenant: jobs[place]?.tenant ?? '', kind: SIMULATED_KIND }, nowMs), place)
    },
    claim(count, nowMs) {
      return scheduler.claim(kinds, count, nowMs).map((job) => {
        const place = places.get(job) ?? -1
        running.set(place, job)
        return place
      })
    },
    end(place, nowMs) {
      const job = running.get(place)
      if (!job) return
      running.delete(place)
      places.delete(job)
      scheduler.settle(job, { type: 'complete' }, nowMs)
    },
    nextChangeMs: (nowMs) => scheduler.nextChangeMs(nowMs),
  }
}

/** First in, first out, whoever owns it. */
export function fifoOrder(): Order {
  const waiting: number[] = []
  let started = 0
  return {
    arrive: (place) => waiting.push(place),
    claim(count) {
      const next = waiting.slice(started, started + count)
      started += next.length
      return next
    },
    end: () => {},
    nextChangeMs: () => Number.POSITIVE_INFINITY,
  }
}
