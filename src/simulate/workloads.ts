import type { WorkloadJob } from '../workload/workload.js'
import { seeded } from './seeded.js'

export const WORKLOADS = ['noisy', 'skewed', 'sybil', 'bursty'] as const
export type WorkloadName = (typeof WORKLOADS)[number]

/** Who comes when with how much, made up or from a recorded log. */
export interface SimulatedWorkload {
  /** By the time at which they arrive. */
  readonly jobs: readonly WorkloadJob[]
  /** Groups that belong to the workload: tenant to group. */
  readonly groups: ReadonlyMap<string, string>
}

export interface WorkloadShape {
  readonly tenants: number
  readonly jobs: number
  readonly durationMs: number
  readonly slots: number
  readonly seed: number
}

/** Jobs that a tenant of the bursty workload enqueues at a time. */
const BURST = 50

/** The made-up workloads. Each keeps the slots about busy for as long as it lasts. */
export function workloadOf(name: WorkloadName, shape: WorkloadShape): SimulatedWorkload {
  const groups = new Map<string, string>()
  const jobs = JOBS[name](shape)
  if (name === 'sybil') for (const { tenant } of jobs) if (tenant !== HONEST) groups.set(tenant, 'sybil')
  return { jobs: jobs.toSorted((one, other) => one.dueMs - other.dueMs), groups }
}

const HONEST = 'honest'

const JOBS: Readonly<Record<WorkloadName, (shape: WorkloadShape) => WorkloadJob[]>> = {
  /** One tenant enqueues half of the jobs at once, and the others theirs over time. */
  noisy: (shape) => {
    const random = seeded(shape.seed)
    return many(shape.jobs, (place) => {
      const isNoisy = place < shape.jobs / 2
      const tenant = isNoisy || shape.tenants === 1 ? 1 : 2 + Math.floor(random() * (shape.tenants - 1))
      return { tenant: nameOf(tenant), dueMs: isNoisy ? 0 : random() * spanMs(shape), durationMs: shape.durationMs }
    })
  },
  /** The tenant of rank r has a part of 1/r (Zipf), and all together a tenth more than the slots can do. */
  skewed: (shape) => {
    const random = seeded(shape.seed)
    const until: number[] = []
    for (let rank = 1; rank <= shape.tenants; rank += 1) until.push((until.at(-1) ?? 0) + 1 / rank)
    return many(shape.jobs, () => {
      const mark = random() * (until.at(-1) ?? 0)
      return {
        tenant: nameOf(1 + until.findIndex((sum) => sum > mark)),
        dueMs: (random() * spanMs(shape)) / 1.1,
        durationMs: shape.durationMs,
      }
    })
  },
  /** One tenant against one that splits as many jobs over all other names. */
  sybil: ({ tenants, jobs, durationMs }) =>
    many(jobs, (place) => ({
      tenant: place % 2 === 0 || tenants === 1 ? HONEST : nameOf(1 + (((place - 1) / 2) % (tenants - 1))),
      dueMs: 0,
      durationMs,
    })),
  /** Everybody enqueues many jobs at a time, now and then. */
  bursty: (shape) => {
    const random = seeded(shape.seed)
    const bursts = many(Math.ceil(shape.jobs / BURST), () => ({
      tenant: nameOf(1 + Math.floor(random() * shape.tenants)),
      dueMs: random() * spanMs(shape),
    }))
    return many(shape.jobs, (place) => {
      const burst = bursts[Math.floor(place / BURST)]
      return { tenant: burst?.tenant ?? nameOf(1), dueMs: burst?.dueMs ?? 0, durationMs: shape.durationMs }
    })
  },
}

function nameOf(number: number): string {
  return `tenant-${number}`
}

/** How long the slots take for all jobs. */
function spanMs({ jobs, durationMs, slots }: WorkloadShape): number {
  return (jobs * durationMs) / slots
}

function many<Each>(count: number, each: (place: number) => Each): Each[] {
  return Array.from({ length: count }, (_, place) => each(place))
}
