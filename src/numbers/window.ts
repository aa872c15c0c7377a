import { bucketOf } from './histogram.js'

/** Tenants in one row: what one statement sends and one row holds stays small, however many tenants there are. */
export const TENANTS_PER_PART = 1_000

/** Parts of one window. A process that serves more tenants than this in a minute leaves those beyond uncounted. */
const PARTS_MAX = 100

/** A histogram of each tenant, as three parallel lists of what is not zero. */
export interface Histograms {
  /** The tenant's place in the part, from 1. */
  readonly places: readonly number[]
  readonly buckets: readonly number[]
  readonly jobs: readonly number[]
}

/** What one worker has counted in one minute for some of its tenants: always the whole, so that it may be written again. */
export interface WindowPart {
  readonly queue: string
  /** Minutes since 1970 by the database's clock. */
  readonly minute: number
  readonly part: number
  readonly tenants: readonly string[]
  readonly started: readonly number[]
  readonly completed: readonly number[]
  readonly failed: readonly number[]
  readonly busySeconds: readonly number[]
  readonly waits: Histograms
  readonly runs: Histograms
}

interface TenantCounts {
  readonly tenant: string
  started: number
  completed: number
  failed: number
  busyMs: number
  readonly waits: Map<number, number>
  readonly runs: Map<number, number>
}

interface Part {
  readonly counts: TenantCounts[]
  /** Rises with every change; what was written last. */
  version: number
  written: number
}

/** What was counted in one minute for one queue. */
export class Window {
  readonly #places = new Map<string, { readonly part: Part; readonly counts: TenantCounts }>()
  readonly #parts: Part[] = []

  started(tenant: string, waitMs: number): void {
    this.#change(tenant, (counts) => {
      counts.started += 1
      count(counts.waits, waitMs)
    })
  }

  busy(tenant: string, ms: number): void {
    this.#change(tenant, (counts) => {
      counts.busyMs += ms
    })
  }

  ran(tenant: string, ms: number): void {
    this.#change(tenant, (counts) => count(counts.runs, ms))
  }

  settled(tenant: string, how: 'completed' | 'failed'): void {
    this.#change(tenant, (counts) => {
      counts[how] += 1
    })
  }

  /** Whether everything has been written. */
  get isWritten(): boolean {
    return this.#parts.every((part) => part.written === part.version)
  }

  /** What has changed since it was written, each with what to call once it is. */
  unwritten(queue: string, minute: number): { readonly part: WindowPart; readonly written: () => void }[] {
    return this.#parts.flatMap((part, index) => {
      const { version } = part
      if (part.written === version) return []
      const written = () => {
        part.written = version
      }
      return [{ part: snapshot(part.counts, { queue, minute, part: index }), written }]
    })
  }

  #change(tenant: string, change: (counts: TenantCounts) => void): void {
    const place = this.#places.get(tenant) ?? this.#add(tenant)
    if (!place) return
    change(place.counts)
    place.part.version += 1
  }

  #add(tenant: string) {
    let part = this.#parts.at(-1)
    if (!part || part.counts.length === TENANTS_PER_PART) {
      if (this.#parts.length === PARTS_MAX) return undefined
      part = { counts: [], version: 0, written: 0 }
      this.#parts.push(part)
    }
    const counts = { tenant, started: 0, completed: 0, failed: 0, busyMs: 0, waits: new Map(), runs: new Map() }
    part.counts.push(counts)
    const place = { part, counts }
    this.#places.set(tenant, place)
    return place
  }
}

function count(histogram: Map<number, number>, ms: number): void {
  const bucket = bucketOf(ms)
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1)
}

function snapshot(
  counts: readonly TenantCounts[],
  of: { readonly queue: string; readonly minute: number; readonly part: number },
): WindowPart {
  return {
    ...of,
    tenants: counts.map(({ tenant }) => tenant),
    started: counts.map(({ started }) => started),
    completed: counts.map(({ completed }) => completed),
    failed: counts.map(({ failed }) => failed),
    busySeconds: counts.map(({ busyMs }) => busyMs / 1_000),
    waits: histograms(counts.map(({ waits }) => waits)),
    runs: histograms(counts.map(({ runs }) => runs)),
  }
}

function histograms(each: readonly ReadonlyMap<number, number>[]): Histograms {
  const places: number[] = []
  const buckets: number[] = []
  const jobs: number[] = []
  each.forEach((histogram, index) => {
    for (const [bucket, number] of histogram) {
      places.push(index + 1)
      buckets.push(bucket)
      jobs.push(number)
    }
  })
  return { places, buckets, jobs }
}
