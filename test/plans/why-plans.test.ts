import { beforeAll, expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { heaviest, mostRows, PlanWatcher, sequentialScans } from '../support/plans.js'

const database = useSharedDatabase()

const TENANTS = 3_000

/** What one answer may touch: it counts to 1,000, of each kind, and looks at each once or twice. */
const ROWS_MAX = 6_000

beforeAll(async () => {
  await database.query(
    `insert into :schema.job (queue, kind, tenant, key, state, priority, max_attempts, run_at, order_at, created_at, payload)
     select 'deep', 'a', 't' || number % $1, case when number % 20 = 0 then 'k' || number % 100 end,
       case when number % 20 = 0 then 'blocked' else 'available' end::text::${database.schema.quoted}.job_state, 0, 5, now(), now(), now(), '{}'
     from generate_series(1, 60000) as number`,
    [TENANTS],
  )
  await database.query(`select :schema.beat_v1('w', '{deep}', '{a,b}', 1000000, 0, 0)`)
})

test.each(['before any claim', 'with a ring of all tenants', 'with statistics'])(
  'an answer reads no table from end to end, and no more rows than it counts: %s',
  async (stage) => {
    if (stage !== 'before any claim') {
      await database.query(
        `insert into :schema.ring (queue, tenant, kind, pass, ready, head_at, head_id)
         select 'deep', 't' || number, 'a', number % 7, true, '-infinity', 0 from generate_series(0, $1 - 1) as number
         on conflict do nothing`,
        [TENANTS],
      )
      await database.query(
        `insert into :schema.walk (queue, kind, tenant, walk_at) values ('deep', 'a', '', now()) on conflict do nothing`,
      )
    }
    if (stage === 'with statistics') await database.query('analyze')
    const watcher = await PlanWatcher.on(database.schema)
    const [last] = await database.query<{ id: string }>(
      `select max(id)::text as id from :schema.job where state = 'available'`,
    )
    const [blocked] = await database.query<{ id: string }>(
      `select max(id)::text as id from :schema.job where state = 'blocked'`,
    )
    for (const [call, value] of [
      ['why_job_v1($1)', last?.id],
      ['why_job_v1($1)', blocked?.id],
      [`why_tenant_v1('deep', $1)`, 't1'],
      [`why_tenant_v1('deep', $1)`, 't20'],
      [`why_tenant_v1('deep', $1)`, 'nobody'],
    ] as const) {
      const plans = await watcher.watch(database.sql(`select * from :schema.${call}`), [value])
      expect(
        sequentialScans(plans).filter((table) => ['job', 'ring', 'signal'].includes(table)),
        call,
      ).toEqual([])
      expect(mostRows(plans), `${call} ${value}: ${heaviest(plans)}`).toBeLessThanOrEqual(ROWS_MAX)
    }
  },
)
