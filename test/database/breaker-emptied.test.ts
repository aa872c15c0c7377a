import { describe, expect, test } from 'vitest'
import { createSchema, type TestSchema } from '../support/database.js'
import { PlanWatcher } from '../support/plans.js'

const LANES = 3_000

/** A queue of which every lane is in the ring, and then without a job. `grouped`: in a hundred groups. */
async function emptied({ quoted, query }: TestSchema, grouped: boolean): Promise<void> {
  if (grouped) {
    await query(`select ${quoted}.configure_tenant('q', 'other', '{"group": "g1"}')`)
    await query(
      `insert into ${quoted}.tenant (queue, tenant, grp) select 'q', 't' || n, 'g' || n % 100 from generate_series(1, ${LANES}) as n`,
    )
  }
  await query(
    `insert into ${quoted}.job (queue, kind, tenant, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'q', 'known', 't' || n, 'available', 0, 5, now(), now(), now(), '1' from generate_series(1, ${LANES}) as n`,
  )
  await query(claim(quoted, 1))
  await query(`select ${quoted}.purge('q')`)
}

function claim(quoted: string, count: number): string {
  return `select * from ${quoted}.claim_v1('q', gen_random_uuid(), 'w', '{known}', ${count}, 60000, true)`
}

describe.each([
  { lanes: 'lanes', grouped: false },
  { lanes: 'lanes of groups', grouped: true },
])('thousands of $lanes whose jobs were purged', ({ grouped }) => {
  test('are found empty by the hundred and not one by one', async () => {
    const schema = await createSchema()
    await emptied(schema, grouped)
    const watcher = await PlanWatcher.on(schema)
    const plans = await watcher.watch(claim(schema.quoted, 1))
    expect(plans.length, 'statements').toBeLessThan(grouped ? 2_000 : 400)
    const ready = await schema.query(`select from ${schema.quoted}.ring where ready`)
    expect(ready).toEqual([])
  })

  test('do not hide a job that has stayed or comes back', async () => {
    const schema = await createSchema()
    const { quoted } = schema
    await emptied(schema, grouped)
    const again = `select ${quoted}.enqueue('known', '1', 't' || n, '{"queue": "q"}') from generate_series(7, 2800, 700) as n`
    await schema.query(again)
    const [first] = await schema.query(claim(quoted, 10))
    await schema.query(again)
    const [second] = await schema.query(claim(quoted, 10))
    expect([first, second]).toMatchObject([{ claimed: 4 }, { claimed: 4 }])
  })
})
