/**
 * Start-time fair queueing (Goyal, Vin and Cheng, 1996), as far as it can be seen from outside: what a log of arrivals
 * and claims must satisfy, whatever picked the jobs. Pure, and knows nothing of passes, rings or the database.
 */
export type Step =
  | { readonly type: 'arrival'; readonly tenant: string; readonly jobs: number }
  | { readonly type: 'claim'; readonly asked: number; readonly served: ReadonlyMap<string, number> }

export type Weights = ReadonlyMap<string, number>

/** Turns of a claim that finds enough tenants, as docs/fairness.md states it. */
const TURNS = 8

/** The most jobs that one turn of a claim may have. */
export function quantumOf(asked: number): number {
  return Math.ceil(asked / TURNS)
}

/** How many jobs a list of tenants has of each. */
export function countTenants(tenants: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const tenant of tenants) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  return counts
}

/** One claim with what waited before and after it. */
interface Window {
  readonly asked: number
  readonly served: ReadonlyMap<string, number>
  readonly before: ReadonlyMap<string, number>
  readonly after: ReadonlyMap<string, number>
}

/** Every sentence is a breach of work conservation, share and first turn; none is what we want. */
export function breaches(steps: readonly Step[], weights: Weights = new Map()): string[] {
  const windows = replay(steps)
  return [...workConservation(windows), ...shares(windows, weights), ...firstTurns(windows)]
}

function replay(steps: readonly Step[]): Window[] {
  const waiting = new Map<string, number>()
  const windows: Window[] = []
  for (const step of steps) {
    if (step.type === 'arrival') {
      waiting.set(step.tenant, (waiting.get(step.tenant) ?? 0) + step.jobs)
      continue
    }
    const before = new Map(waiting)
    for (const [tenant, jobs] of step.served) waiting.set(tenant, (waiting.get(tenant) ?? 0) - jobs)
    windows.push({ asked: step.asked, served: step.served, before, after: new Map(waiting) })
  }
  return windows
}

/** A claim gives what it was asked for, or everything. */
function workConservation(windows: readonly Window[]): string[] {
  return windows.flatMap(({ asked, served, before }, index) => {
    const expected = Math.min(asked, sum(before))
    const got = sum(served)
    return got === expected ? [] : [`claim ${index} of ${asked} gave ${got} jobs where ${expected} were expected`]
  })
}

/**
 * For tenants that wait all through a window, service divided by weight differs by at most a turn of each: the largest
 * up to then, since a turn of before the window may still be on account.
 */
function shares(windows: readonly Window[], weights: Weights): string[] {
  const tenants = [...new Set(windows.flatMap(({ before }) => [...before.keys()]))].sort()
  return tenants.flatMap((one, index) =>
    tenants.slice(index + 1).flatMap((other) => shareOf(windows, weights, [one, other])),
  )
}

function shareOf(windows: readonly Window[], weights: Weights, pair: readonly [string, string]): string[] {
  const [one, other] = pair
  const weightOf = (tenant: string) => weights.get(tenant) ?? 1
  const found: string[] = []
  let difference = 0
  let [low, high, start, quantum] = [0, 0, 0, 0]
  for (const [index, window] of windows.entries()) {
    const busy = pair.every((tenant) => (window.before.get(tenant) ?? 0) > 0 && (window.after.get(tenant) ?? 0) > 0)
    quantum = Math.max(quantum, quantumOf(window.asked))
    if (!busy) {
      ;[difference, low, high, start] = [0, 0, 0, index + 1]
      continue
    }
    difference += (window.served.get(one) ?? 0) / weightOf(one) - (window.served.get(other) ?? 0) / weightOf(other)
    low = Math.min(low, difference)
    high = Math.max(high, difference)
    const bound = quantum / weightOf(one) + quantum / weightOf(other)
    // Passes are doubles: a sum of many weights is off by some of the last bits.
    if (high - low > bound * (1 + 1e-9)) {
      found.push(`from claim ${start} to ${index}, ${one} and ${other} differ by ${high - low}, the bound is ${bound}`)
      ;[difference, low, high, start] = [0, 0, 0, index + 1]
    }
  }
  return found
}

/** Until the first job of a tenant that never had one, every other tenant gets at most one turn. */
function firstTurns(windows: readonly Window[]): string[] {
  const newcomers = new Map<string, { served: Map<string, number>; quantum: number }>()
  const known = new Set<string>()
  const found: string[] = []
  for (const [index, { asked, served, before }] of windows.entries()) {
    for (const [tenant, jobs] of before) {
      if (jobs > 0 && !known.has(tenant)) newcomers.set(tenant, { served: new Map(), quantum: 0 })
      if (jobs > 0) known.add(tenant)
    }
    for (const [newcomer, waited] of newcomers) {
      if ((served.get(newcomer) ?? 0) > 0) {
        newcomers.delete(newcomer)
        continue
      }
      waited.quantum = Math.max(waited.quantum, quantumOf(asked))
      for (const [tenant, jobs] of served) {
        const got = (waited.served.get(tenant) ?? 0) + jobs
        waited.served.set(tenant, got)
        if (got > waited.quantum)
          found.push(`${tenant} had ${got} jobs until claim ${index} while ${newcomer} waited for its first`)
      }
    }
  }
  return found
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0)
}
