import { Window, type WindowPart } from './window.js'

const MINUTE_MS = 60_000

/** What could not be written for so long is given up: its windows are forgotten in the database as well. */
const MINUTES_KEPT = 60

/** The minute in which things are counted while the database's time is not known yet. */
const BEFORE = Number.NEGATIVE_INFINITY

/** Whose job it is. */
export interface Owner {
  readonly queue: string
  readonly tenant: string
}

interface Run extends Owner {
  readonly beganAtMs: number
  countedUntilMs: number
}

/**
 * Adds up what a worker does, tenant by tenant, in minutes of the database's clock. It is told the local monotonic time with
 * every event, and now and then what the database's clock showed at one such time.
 */
export class Aggregator {
  /** By queue, then by minute. */
  readonly #windows = new Map<string, Map<number, Window>>()
  readonly #runs = new Map<object, Run>()
  #databaseOffsetMs: number | undefined
  #minute = BEFORE

  started({ queue, tenant }: Owner, waitMs: number, nowMs: number): void {
    this.#window(queue, nowMs).started(tenant, waitMs)
  }

  /** A handler began with a job. `key` stands for this run and no other. */
  began(key: object, { queue, tenant }: Owner, nowMs: number): void {
    this.#runs.set(key, { queue, tenant, beganAtMs: nowMs, countedUntilMs: nowMs })
  }

  ended(key: object, nowMs: number): void {
    const run = this.#runs.get(key)
    if (!run) return
    this.#runs.delete(key)
    this.#countBusy(run, nowMs)
    this.#window(run.queue, nowMs).ran(run.tenant, nowMs - run.beganAtMs)
  }

  settled({ queue, tenant }: Owner, how: 'completed' | 'failed', nowMs: number): void {
    this.#window(queue, nowMs).settled(tenant, how)
  }

  /** The database's clock showed `databaseMs` at the local time `nowMs`. What was counted before the first time is put into that minute. */
  synchronize(databaseMs: number, nowMs: number): void {
    const isFirst = this.#databaseOffsetMs === undefined
    this.#databaseOffsetMs = databaseMs - nowMs
    if (!isFirst) return
    const minute = this.#minuteAt(nowMs)
    for (const windows of this.#windows.values()) {
      const early = windows.get(BEFORE)
      windows.clear()
      if (early) windows.set(minute, early)
    }
  }

  /**
   * What has to be written, including what the jobs that run now have used up so far. Nothing before the database's clock is
   * known. A window that is over and written is forgotten.
   */
  unwritten(nowMs: number): readonly { readonly part: WindowPart; readonly written: () => void }[] {
    if (this.#databaseOffsetMs === undefined) return []
    for (const run of this.#runs.values()) this.#countBusy(run, nowMs)
    const current = this.#minuteAt(nowMs)
    const all = []
    for (const [queue, windows] of this.#windows) {
      for (const [minute, window] of windows) {
        const isOver = minute < current
        if ((isOver && window.isWritten) || minute < current - MINUTES_KEPT) windows.delete(minute)
        else all.push(...window.unwritten(queue, minute))
      }
    }
    return all
  }

  #countBusy(run: Run, nowMs: number): void {
    const ms = nowMs - run.countedUntilMs
    if (ms <= 0) return
    run.countedUntilMs = nowMs
    this.#window(run.queue, nowMs).busy(run.tenant, ms)
  }

  #window(queue: string, nowMs: number): Window {
    let windows = this.#windows.get(queue)
    if (!windows) {
      windows = new Map()
      this.#windows.set(queue, windows)
    }
    const minute = this.#minuteAt(nowMs)
    let window = windows.get(minute)
    if (!window) {
      window = new Window()
      windows.set(minute, window)
    }
    return window
  }

  /** Never goes back by a little: a window that was forgotten must not begin again from nothing, and replace what was written. */
  #minuteAt(nowMs: number): number {
    if (this.#databaseOffsetMs === undefined) return BEFORE
    const minute = Math.floor((nowMs + this.#databaseOffsetMs) / MINUTE_MS)
    if (minute > this.#minute || minute < this.#minute - 1) this.#minute = minute
    return this.#minute
  }
}
