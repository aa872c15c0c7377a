import { afterAll, beforeAll, expect, test } from 'vitest'
import { STRATEGIES, type Strategy } from '../../src/settings/settings.js'
import { type HeldClaim, openStore, TestQueue } from '../support/claims.js'
import { createSharedSchema } from '../support/database.js'
import { newJobs, uniqueName } from '../support/factory.js'

/** Of each connection. The case in the field has 200, and 5,000 jobs. */
const CLAIMS = 20
const CONNECTIONS = 4
const JOBS = 1_200
const SIZES = [1, 7, 1, 7, 500] as const

/** The joins that put a locking sub-select on the inner side of a loop, and what else a session may switch off. */
const SWITCHED_OFF = [
  ['hashjoin', 'mergejoin', 'material'],
  ['hashjoin', 'mergejoin', 'material', 'seqscan'],
  ['indexscan', 'bitmapscan', 'indexonlyscan', 'tidscan', 'sort', 'hashagg'],
  ['nestloop'],
]

type Schema = Awaited<ReturnType<typeof createSharedSchema>>
const schemas: Partial<Record<'never analysed' | 'analysed while empty', Schema>> = {}

beforeAll(async () => {
  for (const statistics of ['never analysed', 'analysed while empty'] as const) {
    const schema = await createSharedSchema()
    await schema.query(`alter table ${schema.quoted}.job set (autovacuum_enabled = false)`)
    if (statistics === 'analysed while empty') await schema.query(`analyze ${schema.quoted}.job`)
    schemas[statistics] = schema
  }
})

afterAll(async () => {
  for (const schema of Object.values(schemas)) await schema.drop()
})

/** Round robin gives out single turns in a loop and is slow, so it has its turn once. */
const CASES = (['never analysed', 'analysed while empty'] as const).flatMap((statistics) =>
  SWITCHED_OFF.flatMap((off, nth) =>
    STRATEGIES.filter((strategy) => strategy !== 'round-robin' || nth === 0).map((strategy) => {
      return { statistics, off, strategy, names: off.join(', ') }
    }),
  ),
)

test.each(CASES)(
  '$strategy, $statistics, without $names: no claim takes more than it was asked for (B01)',
  async (of) => {
    const schema = schemas[of.statistics] as Schema
    const name = uniqueName('queue')
    const ids = await fill(schema, name, of.strategy)
    const options = of.off.map((setting) => `-c enable_${setting}=off`).join(' ')
    const claims = (await Promise.all(Array.from({ length: CONNECTIONS }, () => work(schema, name, options)))).flat()
    const claimed = claims.flatMap((claim) => claim.ids)
    expect(new Set(claimed).size).toBe(claimed.length)
    expect(claimed).toHaveLength(ids.length)
    const running = await schema.query<{ id: string }>(
      `select id::text from ${schema.quoted}.job where queue = $1 and state = 'running'`,
      [name],
    )
    expect(running.map(({ id }) => id).sort()).toEqual(claimed.sort())
  },
)

async function fill(schema: Schema, queue: string, strategy: Strategy): Promise<string[]> {
  await using open = openStore(schema)
  await open.admin.configureQueue(queue, { strategy })
  const tenants = Array.from({ length: 20 }, (_, n) => `t${n}`)
  return open.store.enqueue(tenants.flatMap((tenant) => newJobs(JOBS / 20, { queue, tenant })))
}

async function work(schema: Schema, name: string, options: string): Promise<HeldClaim[]> {
  await using open = openStore(schema, { options })
  const queue = new TestQueue(open.store, name)
  const claims: HeldClaim[] = []
  for (let n = 0; n < CLAIMS; n++) {
    const size = SIZES[n % SIZES.length] as number
    const claim = await queue.claim(size)
    expect(claim.jobs.length).toBeLessThanOrEqual(size)
    claims.push(claim)
  }
  return claims
}
