import { claim } from './claim.js'
import { configureGroup, configureKey, configureKind, configureQueue, configureTenant } from './configure.js'
import type { Job } from './job.js'
import { PRIORITY_POINT_MS } from './job.js'
import { awaitKey } from './keys.js'
import { nextChangeMs } from './next-change.js'
import type { GroupSettings, LimitSettings, QueueSettings, TenantSettings } from './settings.js'
import { keyOf, kindOf, laneOf, newState, type State, signal } from './state.js'

export interface Arrival {
  readonly tenant: string
  readonly kind: string
  readonly key?: string
  readonly priority?: number
  /** Not before this time; `nowMs` by default. */
  readonly runAtMs?: number
  /** Its place in the order of its tenant, by default as its time and its priority say. */
  readonly orderAtMs?: number
  readonly maxAttempts?: number
}

/** How a run ended. `reclaim`: its worker was lost. Delays are given, since back-off is a matter of chance. */
export type Ending =
  | { readonly type: 'complete' | 'discard' | 'release' }
  | { readonly type: 'retry' | 'snooze' | 'reclaim'; readonly delayMs: number }

const ATTEMPTS_DEFAULT = 20

/**
 * The queue as far as the order of starts depends on it: the same decisions as those of the database's claim, on
 * virtual time. Every method is told what time it is; nothing here has a clock, chance or a connection.
 */
export class Scheduler {
  readonly #state: State = newState()
  #lastId = 0

  /** For those that look at its inside: the dry run of a live queue, and tests. */
  get state(): State {
    return this.#state
  }

  configureQueue(settings: QueueSettings): void {
    configureQueue(this.#state, settings)
  }

  configureTenant(tenant: string, settings: TenantSettings): void {
    configureTenant(this.#state, tenant, settings)
  }

  configureGroup(group: string, settings: GroupSettings): void {
    configureGroup(this.#state, group, settings)
  }

  configureKind(kind: string, settings: LimitSettings): void {
    configureKind(this.#state, kind, settings)
  }

  configureKey(key: string, settings: Omit<LimitSettings, 'paused'>): void {
    configureKey(this.#state, key, settings)
  }

  enqueue(arrival: Arrival, nowMs: number): Job {
    const { tenant, kind, key, priority = 0, runAtMs = nowMs, maxAttempts = ATTEMPTS_DEFAULT } = arrival
    this.#lastId += 1
    const job: Job = {
      id: this.#lastId,
      lane: laneOf(this.#state, tenant, kind),
      key,
      priority,
      maxAttempts,
      standing: 'scheduled',
      attempt: 0,
      runAtMs,
      orderAtMs: arrival.orderAtMs ?? runAtMs - priority * PRIORITY_POINT_MS,
      claimedAtMs: undefined,
      charged: 0,
      slot: -1,
    }
    this.#state.jobs.set(job.id, job)
    this.#place(job, nowMs)
    return job
  }

  /** Starts up to `count` jobs of the kinds; they run until they are settled. */
  claim(kinds: readonly string[], count: number, nowMs: number): Job[] {
    return claim(this.#state, { kinds, count, nowMs })
  }

  /** Ends the run of a job: its slot is free at once, and its tenant is charged rightly at the next claim. */
  settle(job: Job, ending: Ending, nowMs: number): void {
    this.#stop(job, nowMs)
    const isLast = ending.type === 'reclaim' && job.attempt >= job.maxAttempts
    if (ending.type === 'complete' || ending.type === 'discard' || isLast) {
      this.#forget(job)
      return
    }
    if (ending.type === 'snooze' || ending.type === 'release') job.attempt -= 1
    if ('delayMs' in ending) {
      job.runAtMs = nowMs + ending.delayMs
      // A job with a key keeps its place, or its successors would overtake it.
      if (job.key === undefined) job.orderAtMs = job.runAtMs - job.priority * PRIORITY_POINT_MS
    }
    job.standing = 'scheduled'
    if (job.key !== undefined) keyOf(this.#state, job.key).returning.add(job)
    this.#place(job, nowMs, ending.type === 'release')
  }

  /** When something changes by time alone that a claim in vain waited for; infinite when nothing does. */
  nextChangeMs(nowMs: number): number {
    return nextChangeMs(this.#state, nowMs)
  }

  /** Takes away a job that waits; false when it runs or is gone. */
  cancel(job: Job): boolean {
    const key = job.key === undefined ? undefined : keyOf(this.#state, job.key)
    if (job.standing === 'running' || job.standing === 'gone') return false
    if (job.standing === 'scheduled') {
      kindOf(this.#state, job.lane.kind).scheduled.remove(job)
      key?.returning.delete(job)
    } else if (job.standing === 'blocked') key?.blocked.remove(job)
    else job.lane.backlog.remove(job)
    key?.admitted.delete(job)
    if (key) this.#state.noticedKeys.add(key)
    this.#forget(job)
    return true
  }

  #place(job: Job, nowMs: number, isDue = job.runAtMs <= nowMs): void {
    if (!isDue) kindOf(this.#state, job.lane.kind).scheduled.push(job)
    else if (job.key !== undefined) awaitKey(this.#state, job)
    else {
      job.standing = 'available'
      job.lane.backlog.push(job)
      signal(this.#state, job.lane)
    }
  }

  #stop(job: Job, nowMs: number): void {
    const { lane } = job
    const state = this.#state
    state.limits.running -= 1
    kindOf(state, lane.kind).limits.running -= 1
    lane.member.limits.running -= 1
    // Only a limit on what runs can have waited for this slot.
    if ((lane.member.limits.concurrency ?? state.tenantDefaults.concurrency) !== undefined)
      state.noticed.add(lane.member)
    if (job.key !== undefined) {
      const key = keyOf(state, job.key)
      key.limits.running -= 1
      state.noticedKeys.add(key)
    }
    if (state.charge === 'jobs') return
    const seconds = (nowMs - (job.claimedAtMs ?? nowMs)) / 1_000
    const measured = lane.measured ?? { jobs: 0, seconds: 0, surplus: 0 }
    lane.measured = measured
    measured.jobs += 1
    measured.seconds += seconds
    measured.surplus += seconds - job.charged
    state.measured.add(lane)
  }

  #forget(job: Job): void {
    job.standing = 'gone'
    this.#state.jobs.delete(job.id)
  }
}
