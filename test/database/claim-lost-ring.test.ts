import { expect, test } from 'vitest'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { openStore, SharedDatabase, TestQueue, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'

const database = useSharedDatabase()

/** Every table whose contents a crash of the server takes away. */
async function unloggedTables(of: SharedDatabase): Promise<string[]> {
  const rows = await of.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
     where relnamespace = $1::regnamespace and relkind = 'r' and relpersistence = 'u'`,
    [of.schema.quoted],
  )
  return rows.map(({ name }) => name)
}

test('when the unlogged tables are emptied, as a crash does it, the next claims find every job', async () => {
  const queue = database.queue()
  const kinds = ['k1', 'k2']
  const jobs = Array.from({ length: 90 }, (_, n) => ({ tenant: `t${n % 30}`, kind: kinds[n % 2] as string }))
  const ids = await queue.enqueue(...jobs)
  const claimed = (await queue.claim(13, { kinds })).ids
  const lost = await unloggedTables(database)
  expect(lost.length).toBeGreaterThanOrEqual(3)
  await database.query(`truncate ${lost.join(', ')}`)
  // Other workers may know other kinds: the first claim finds its own, the second the rest.
  claimed.push(...(await queue.claimAll(50, { kinds: ['k2'] })).map(({ id }) => id))
  claimed.push(...(await queue.claimAll(50, { kinds })).map(({ id }) => id))
  expect(claimed.sort()).toEqual(ids.sort())
})

test('after that, tenants share from the first claim on and new ones are heard of', async () => {
  const queue = database.queue()
  for (const tenant of ['a', 'b', 'c']) await queue.enqueueMany(50, { tenant })
  await queue.claim(10)
  await database.query(`truncate ${(await unloggedTables(database)).join(', ')}`)
  expect((await queue.claim(3)).tenants.sort()).toEqual(['a', 'b', 'c'])
  const [id] = await queue.enqueue({ tenant: 'new' })
  const served = [...(await queue.claim(2)).ids, ...(await queue.claim(2)).ids, ...(await queue.claim(2)).ids]
  expect(served).toContain(id)
})

test('no claim needs a row of the unlogged tables to be there, whichever of them is empty', async () => {
  for (const table of await unloggedTables(database)) {
    const queue = database.queue()
    const ids = await queue.enqueueMany(4, { tenant: table })
    const [first] = (await queue.claim(1, { listening: true })).ids
    await database.query(`delete from ${table}`)
    const rest = (await queue.claim(10, { listening: true })).ids
    expect([first, ...rest], table).toEqual(ids)
  }
})

test('a server that crashes loses no job that was committed, and no lease', async () => {
  await using server = await EmbeddedServer.start({ settings: { fsync: 'off' } })
  const crashing = new SharedDatabase()
  await crashing.start(server.connectionString)
  const queue = crashing.queue()
  const ids = await queue.enqueue(...Array.from({ length: 40 }, (_, n) => ({ tenant: `t${n % 4}` })))
  const completed = await queue.claim(5)
  await queue.settle(completed)
  const running = await queue.claim(5)
  // A claim does not wait for its log record to be written, so a crash may undo it; an enqueue does, and takes it along.
  ids.push(...(await queue.enqueue({ tenant: 'last' })))
  await server.restart('immediate')

  await using open = openStore(crashing.schema)
  const after = new TestQueue(open.store, queue.name)
  const rest = await after.claimAll(50)
  expect([...completed.ids, ...running.ids, ...rest.map(({ id }) => id)].sort()).toEqual(ids.sort())
  expect(await after.settle(running)).toHaveLength(5)
  expect((await after.record(completed.ids[0])).state).toBe('completed')
  await expectSound(crashing)
  await crashing.end()
})
