import type { TransactionClient } from '../driver/transaction-client.js'
import { LeaseLostError } from '../errors.js'
import type { HeldJob } from '../lease/held-leases.js'
import type { Store } from '../store/store.js'

/** Where the transactions of handlers come from: the application's pool, never the worker's own connections. */
export interface TransactionSource {
  /** Begins, runs `work`, and commits; rolls back when `work` rejects. */
  transaction<Result>(work: (client: TransactionClient) => Promise<Result>): Promise<Result>
}

/**
 * - `idle`: no transaction, or the last one was rolled back; the attempt is settled as usual.
 * - `open`: under way.
 * - `committed`: the job is completed; nothing is left to settle.
 * - `doubtful`: the connection broke during the commit. Either the job is gone, and then the fence turns away whatever
 *   we send; or everything was rolled back and the job is still ours, and then its attempt has failed. So the attempt is
 *   settled as failed, and only what the database answers to that is no alarm.
 * - `fenced`: the database said that the lease is lost.
 */
export type TransactionState = 'idle' | 'open' | 'committed' | 'doubtful' | 'fenced'

/** `context.transaction` of one job. */
export class JobTransaction {
  readonly #held: HeldJob
  readonly #source: TransactionSource
  readonly #store: Pick<Store, 'completeIn'>
  #state: TransactionState = 'idle'

  constructor(held: HeldJob, source: TransactionSource, store: Pick<Store, 'completeIn'>) {
    this.#held = held
    this.#source = source
    this.#store = store
  }

  get state(): TransactionState {
    return this.#state
  }

  async run<Result>(work: (client: TransactionClient) => Promise<Result>): Promise<Result> {
    this.#begin()
    let completed = false
    try {
      const result = await this.#source.transaction(async (client) => {
        const value = await work(client)
        await this.#complete(client)
        completed = true
        return value
      })
      this.#state = 'committed'
      return result
    } catch (error) {
      if (this.#state === 'open') this.#state = completed ? 'doubtful' : 'idle'
      throw error
    }
  }

  #begin(): void {
    const { job, lease } = this.#held
    switch (this.#state) {
      case 'idle':
        if (lease.lost) throw new LeaseLostError(job.id)
        this.#state = 'open'
        return
      case 'open':
        throw new Error(`a transaction of job ${job.id} is open already; wait for it before you begin another`)
      case 'committed':
        throw new Error(`job ${job.id} is completed already; put all its writes into one context.transaction`)
      case 'doubtful':
        throw new Error(`whether job ${job.id} was committed is not known; let the handler fail`)
      case 'fenced':
        throw new LeaseLostError(job.id)
    }
  }

  /** The last statement before the commit. It fails the transaction unless the job is still ours. */
  async #complete(client: TransactionClient): Promise<void> {
    const { job, lease } = this.#held
    if (await this.#store.completeIn(client, lease.queue, job.id, lease.id)) return
    this.#state = 'fenced'
    throw new LeaseLostError(job.id)
  }
}
