import { describe, expect, it } from 'vitest'
import { drain, Ledger, warmUp } from './drain.js'
import type { Claimant, Claimed } from './subject.js'

/** A queue that can be made to do what ours must never do: whether a fault is noticed cannot be tried on a sound one. */
class FaultyQueue implements Claimant {
  readonly #claims: (readonly string[] | Error)[]
  refused = new Set<string>()

  constructor(...claims: readonly (readonly string[] | Error)[]) {
    this.#claims = [...claims]
  }

  async claim(): Promise<Claimed> {
    const next = this.#claims.shift() ?? []
    if (next instanceof Error) throw next
    return { jobIds: next, fence: 'fence' }
  }

  async settle({ jobIds }: Claimed): Promise<ReadonlySet<string>> {
    return new Set(jobIds.filter((id) => !this.refused.has(id)))
  }

  async flushStatistics(): Promise<void> {}
  async close(): Promise<void> {}
}

const { signal } = new AbortController()

describe('drain', () => {
  it('ends when so many jobs are settled, and counts claims that brought nothing before', async () => {
    const claimants = [new FaultyQueue(['1', '2'], [], ['3']), new FaultyQueue(['4'], [], ['5', '6'])]
    const record = await drain({ claimants, jobs: 6, signal, ledger: new Ledger() })
    expect(record).toMatchObject({ jobs: 6, emptyClaims: 2, lateClaims: 0 })
    expect(record.claimsMs).toHaveLength(6)
  })

  it('refuses a job that was claimed twice, also by two connections', async () => {
    const claimants = [new FaultyQueue(['1', '2']), new FaultyQueue(['3', '2'])]
    const drained = drain({ claimants, jobs: 4, signal, ledger: new Ledger() })
    await expect(drained).rejects.toThrow('job 2 was claimed twice')
  })

  it('refuses a job that was claimed in the warm-up before', async () => {
    const claimants = [new FaultyQueue(['1'], ['1'])]
    const ledger = new Ledger()
    await warmUp({ claimants, signal, ledger }, 1)
    await expect(drain({ claimants, jobs: 1, signal, ledger })).rejects.toThrow('job 1 was claimed twice')
  })

  it('refuses a queue that does not let the owner settle', async () => {
    const queue = new FaultyQueue(['1', '2'])
    queue.refused.add('2')
    const drained = drain({ claimants: [queue], jobs: 2, signal, ledger: new Ledger() })
    await expect(drained).rejects.toThrow('job 2 was settled by its owner and refused')
  })

  it('gives up on jobs that no claim finds', async () => {
    const drained = drain({ claimants: [new FaultyQueue(['1'])], jobs: 3, signal, ledger: new Ledger() })
    await expect(drained).rejects.toThrow('2 jobs are left and no claim finds them')
  })

  it('claims again after a lock was not granted in time, and only then', async () => {
    const late = new Error('late', { cause: Object.assign(new Error('lock timeout'), { code: '55P03' }) })
    const claimants = [new FaultyQueue(late, ['1'])]
    expect(await drain({ claimants, jobs: 1, signal, ledger: new Ledger() })).toMatchObject({ jobs: 1, lateClaims: 1 })
    const broken = [new FaultyQueue(new Error('broken'), ['1'])]
    await expect(drain({ claimants: broken, jobs: 1, signal, ledger: new Ledger() })).rejects.toThrow('broken')
  })

  it('stops when it is interrupted', async () => {
    const interruption = AbortSignal.abort(new Error('stopped by SIGINT'))
    const drained = drain({ claimants: [new FaultyQueue(['1'])], jobs: 1, signal: interruption, ledger: new Ledger() })
    await expect(drained).rejects.toThrow('stopped by SIGINT')
  })
})
