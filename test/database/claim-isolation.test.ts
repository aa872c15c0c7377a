import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { openStore, TestQueue, useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf, expectSound } from '../support/expect.js'
import { newJob } from '../support/factory.js'

const database = useSharedDatabase()

const LEVELS = ['repeatable read', 'serializable']

/** Jobs of each of the connections that work at once. */
const JOBS = 30
const CONNECTIONS = 8

function sessionAt(level: string) {
  return { options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` }
}

test.each(LEVELS)('a claim of a session at %s is refused and takes nothing (B78)', async (level) => {
  const queue = database.queue()
  await queue.enqueue({})
  const client = await database.schema.connect()
  await client.query(`begin isolation level ${level}`)
  const claim = client.query(
    database.sql(`select * from :schema.claim_v1($1, $2, 'w', '{send-invoice}', 1, 60000, false)`),
    [queue.name, randomUUID()],
  )
  const error = await databaseErrorOf(claim)
  expect(error).toMatchObject({
    code: '25000',
    message: `expected the isolation level of a claim to be read committed, got ${level}`,
    hint: 'Begin the transaction with: begin isolation level read committed.',
  })
  await client.query('rollback')
  expect((await queue.claim(1)).jobs).toHaveLength(1)
})

test.each(LEVELS)('the store claims although its role’s sessions begin at %s (B78)', async (level) => {
  await using open = openStore(database.schema, sessionAt(level))
  const queue = new TestQueue(open.store, database.queue().name)
  const ids = await queue.enqueueMany(3)
  for (const id of ids) {
    const claim = await queue.claim(1)
    expect(claim.jobs).toMatchObject([{ id, attempt: 1, tenant: 'acme' }])
    expect(await queue.settle(claim)).toEqual([id])
  }
  expect((await queue.claim(1)).jobs).toEqual([])
})

test.each(LEVELS)(
  'nothing is lost, doubled or refused when all sessions of a busy queue begin at %s (B78)',
  async (level) => {
    const name = database.queue().name
    const completed: string[] = []
    const enqueued: string[] = []
    const work = async () => {
      await using open = openStore(database.schema, sessionAt(level))
      const queue = new TestQueue(open.store, name)
      for (let done = 0; done < JOBS; ) {
        enqueued.push(...(await queue.enqueue({ tenant: `t${done % 7}` })))
        const claim = await queue.claim(3)
        await open.store.extend([claim.leaseId], 60_000)
        completed.push(...(await queue.settle(claim)))
        await open.store.reclaim()
        done += 1
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, work))
    const queue = database.queue(name)
    for (let claim = await queue.claim(100); claim.jobs.length > 0; claim = await queue.claim(100)) {
      completed.push(...(await queue.settle(claim)))
    }
    expect(completed.sort()).toEqual(enqueued.sort())
    expect(enqueued).toHaveLength(JOBS * CONNECTIONS)
    await expectSound(database)
  },
)

test.each(LEVELS)('an enqueue belongs to the caller’s transaction at %s too (B78)', async (level) => {
  const queue = database.queue()
  const client = await database.schema.connect()
  await client.query(`begin isolation level ${level}`)
  const [id] = await database.store.enqueue([newJob({ queue: queue.name })], client)
  expect((await queue.claim(1)).jobs).toEqual([])
  await client.query('commit')
  expect((await queue.claim(1)).ids).toEqual([id])
})
