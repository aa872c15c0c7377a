import { systemClock } from '../clock.js'
import { isLockTimeout } from '../driver/pg-errors.js'
import { WorkloadError } from '../workload/workload.js'
import type { Claimant, Claimed } from './subject.js'

/** Claims in a row that brought nothing although jobs must be left: after so many they are not only held by others. */
const EMPTY_CLAIMS_MAX = 10_000

export interface DrainOptions {
  readonly claimants: readonly Claimant[]
  /** Stop claiming once so many are claimed. */
  readonly jobs: number
  readonly signal: AbortSignal
  readonly ledger: Ledger
}

export interface DrainRecord {
  /** Claimed and settled: a few more than asked for when the last claims met. */
  readonly jobs: number
  readonly durationMs: number
  /** Of every claim, with the reading of its jobs. */
  readonly claimsMs: readonly number[]
  /** Claims that brought nothing before all were claimed. */
  readonly emptyClaims: number
  /** Claims that were not let in in time and asked again, as a worker does. */
  readonly lateClaims: number
}

/** Who has had which job: what is claimed twice or refused at the settling is an error, and ends the run. */
export class Ledger {
  readonly #claimed = new Set<string>()

  get size(): number {
    return this.#claimed.size
  }

  claimed(jobIds: readonly string[]): void {
    for (const id of jobIds) {
      if (this.#claimed.has(id)) throw new WorkloadError(`job ${id} was claimed twice; please report this as a bug`)
      this.#claimed.add(id)
    }
  }

  settled({ jobIds }: Claimed, accepted: ReadonlySet<string>): void {
    const refused = jobIds.filter((id) => !accepted.has(id))
    if (refused.length === 0) return
    throw new WorkloadError(`job ${refused[0]} was settled by its owner and refused; please report this as a bug`)
  }
}

/** Claims and settles over all connections at once until `jobs` are claimed. */
export async function drain({ claimants, jobs, signal, ledger }: DrainOptions): Promise<DrainRecord> {
  const claimsMs: number[] = []
  let claimed = 0
  let emptyClaims = 0
  let lateClaims = 0
  let broken = false
  const work = async (claimant: Claimant) => {
    let empty = 0
    while (claimed < jobs && !broken) {
      signal.throwIfAborted()
      const startMs = systemClock.monotonicMs()
      const claim = await claimOrNone(claimant)
      claimsMs.push(systemClock.monotonicMs() - startMs)
      if (!claim) {
        lateClaims += 1
        continue
      }
      claimed += claim.jobIds.length
      ledger.claimed(claim.jobIds)
      if (claim.jobIds.length > 0) {
        ledger.settled(claim, await claimant.settle(claim))
        empty = 0
      } else if (claimed < jobs) {
        emptyClaims += 1
        empty += 1
        if (empty > EMPTY_CLAIMS_MAX) throw new WorkloadError(`${jobs - claimed} jobs are left and no claim finds them`)
      }
    }
  }
  const startMs = systemClock.monotonicMs()
  const breakOff = (error: unknown) => {
    broken = true
    throw error
  }
  await all(claimants.map((claimant) => work(claimant).catch(breakOff)))
  return { jobs: claimed, durationMs: systemClock.monotonicMs() - startMs, claimsMs, emptyClaims, lateClaims }
}

/**
 * Lets every connection claim and settle a few times: server processes compile the functions and settle for generic plans
 * at their first calls, which a worker pays once in its life.
 */
export async function warmUp({ claimants, ledger }: Omit<DrainOptions, 'jobs'>, rounds: number): Promise<void> {
  await all(
    claimants.map(async (claimant) => {
      for (let round = 0; round < rounds; round += 1) {
        const claim = await claimOrNone(claimant)
        if (!claim) continue
        ledger.claimed(claim.jobIds)
        if (claim.jobIds.length > 0) ledger.settled(claim, await claimant.settle(claim))
      }
    }),
  )
}

/** Undefined when a lock was not granted in time, which took nothing: a worker tries again, and so do we. */
async function claimOrNone(claimant: Claimant): Promise<Claimed | undefined> {
  try {
    return await claimant.claim()
  } catch (error) {
    if (isLockTimeout(error)) return undefined
    throw error
  }
}

/** Waits for all, also after one has failed: nobody is to be left working on a connection that is being closed. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
