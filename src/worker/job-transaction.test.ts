import { expect, test } from 'vitest'
import type { TransactionClient } from '../driver/transaction-client.js'
import { LeaseLostError } from '../errors.js'
import type { Job } from '../job/job.js'
import { HeldLeases } from '../lease/held-leases.js'
import { JobTransaction } from './job-transaction.js'

interface Answers {
  readonly completeIn?: () => Promise<boolean>
  readonly commit?: () => Promise<void>
}

function create({ completeIn = async () => true, commit = async () => {} }: Answers = {}) {
  const steps: string[] = []
  const leases = new HeldLeases(30_000)
  const job = { id: '7' } as Job // nothing else of it is read
  const lease = leases.hold({ leaseId: 'lease', queue: 'q', jobs: [job], sentAtMs: 0 })
  const [held] = [...lease.jobs]
  if (!held) throw new Error('no job')
  const client = {} as TransactionClient // passed on, never used
  const source = {
    transaction: async <Result>(work: (client: TransactionClient) => Promise<Result>) => {
      steps.push('begin')
      try {
        const result = await work(client)
        await commit()
        steps.push('commit')
        return result
      } catch (error) {
        steps.push('rollback')
        throw error
      }
    },
  }
  const store = {
    completeIn: async (_: unknown, queue: string, jobId: string, leaseId: string) => {
      steps.push(`complete ${queue} ${jobId} ${leaseId}`)
      return completeIn()
    },
  }
  return { transaction: new JobTransaction(held, source, store), lease, steps }
}

test('the job is completed in the transaction of the writes, as its last statement', async () => {
  const { transaction, steps } = create()
  const result = await transaction.run(async () => {
    steps.push('write')
    return 42
  })
  expect(result).toBe(42)
  expect(steps).toEqual(['begin', 'write', 'complete q 7 lease', 'commit'])
  expect(transaction.state).toBe('committed')
})

test('an error of the writes rolls back, and the attempt is settled as usual or tried again', async () => {
  const { transaction, steps } = create()
  await expect(transaction.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(steps).toEqual(['begin', 'rollback'])
  expect(transaction.state).toBe('idle')
  await transaction.run(async () => {})
  expect(transaction.state).toBe('committed')
})

test('a lost lease rolls the writes back (B27)', async () => {
  const { transaction, steps } = create({ completeIn: async () => false })
  await expect(transaction.run(async () => {})).rejects.toThrow(LeaseLostError)
  expect(steps.at(-1)).toBe('rollback')
  expect(transaction.state).toBe('fenced')
  await expect(transaction.run(async () => {})).rejects.toThrow(LeaseLostError)
})

test('a lease that is known to be lost does not even begin', async () => {
  const { transaction, lease, steps } = create()
  lease.lose()
  await expect(transaction.run(async () => {})).rejects.toThrow(LeaseLostError)
  expect(steps).toEqual([])
})

test('a connection that breaks during the commit leaves it open whether the job is completed', async () => {
  const { transaction } = create({ commit: () => Promise.reject(new Error('connection lost')) })
  await expect(transaction.run(async () => {})).rejects.toThrow('connection lost')
  expect(transaction.state).toBe('doubtful')
  await expect(transaction.run(async () => {})).rejects.toThrow(/not known/)
})

test('a job is completed once: neither a second nor a nested transaction is begun', async () => {
  const { transaction } = create()
  await transaction.run(async () => {
    await expect(transaction.run(async () => {})).rejects.toThrow(/is open already/)
  })
  await expect(transaction.run(async () => {})).rejects.toThrow(/completed already/)
})
