import { describe, expect, test } from 'vitest'
import { type HeldClaim, type Session, useSharedDatabase } from '../support/claims.js'
import { expectSound } from '../support/expect.js'
import { LimitedQueue } from '../support/limits.js'
import { until } from '../support/until.js'

const database = useSharedDatabase()

const KINDS = ['send-invoice', 'other']
const LIMIT = 2

interface Scene {
  readonly limited: LimitedQueue
  /** What runs when the curtain rises: as many as the limit allows. */
  readonly running: HeldClaim
  /** A job that waits. */
  readonly waiting: string
}

type Act = (session: Session, scene: Scene) => Promise<unknown>

const settle =
  (statement: string): Act =>
  (session, { limited, running }) =>
    session.run(`select :schema.${statement}`, [limited.name, running.ids, running.ids.map(() => running.leaseId)])

const set =
  (call: string): Act =>
  (session, { limited }) =>
    session.run(`select :schema.${call}`, [limited.name])

/** What may happen at the same time, each in a transaction that stays open for a while. */
const ACTS: Readonly<Record<string, Act>> = {
  claim: (session, { limited }) => session.claim(limited.name, 5, KINDS),
  complete: settle(`complete_v1($1, $2, $3, '{}')`),
  release: settle(
    `requeue_v1($1, $2, $3, array_fill('release'::text, array[2]), array_fill(0::float8, array[2]), array_fill(null::jsonb, array[2]), '{}')`,
  ),
  retry: settle(
    `requeue_v1($1, $2, $3, array_fill('retry'::text, array[2]), array_fill(0::float8, array[2]), array_fill('{"name": "Error", "message": "no"}'::jsonb, array[2]), '{}')`,
  ),
  reclaim: async (session, { running }) => {
    const expire = `update :schema.lease set expires_at = now() - interval '1 second'
      where id = (select id from :schema.lease where id = $1 for update skip locked)`
    await database.query(expire, [running.leaseId])
    return session.run('select * from :schema.reclaim_v1(100)')
  },
  cancel: (session, { waiting }) => session.run(`select :schema.cancel_v1($1, 'no')`, [waiting]),
  'limit set anew': set(`configure_tenant($1, 'acme', '{"concurrency": ${LIMIT}}')`),
  'limit of the key set anew': set(`configure_key($1, 'k', '{"concurrency": ${LIMIT}}')`),
  pause: set(`pause($1, '{"tenant": "acme"}')`),
}

const PAIRS = Object.keys(ACTS).flatMap((first) => Object.keys(ACTS).map((second) => ({ first, second })))

async function scene(key: string | undefined): Promise<Scene> {
  const limited = new LimitedQueue(database)
  await limited.setTenant('acme', { concurrency: LIMIT })
  await limited.setKey('k', { concurrency: LIMIT })
  const waiting = await limited.queue.enqueueMany(6, { maxAttempts: 50, ...(key !== undefined && { key }) })
  const running = await limited.queue.claim(5)
  expect(running.ids).toHaveLength(LIMIT)
  return { limited, running, waiting: waiting.at(-1) as string }
}

async function expectWithinLimit({ limited }: Scene): Promise<void> {
  expect((await limited.running('tenant'))['acme'] ?? 0).toBeLessThanOrEqual(LIMIT)
}

let sessions: readonly [Session, Session] | undefined

async function pair(): Promise<readonly [Session, Session]> {
  sessions ??= [await database.session(), await database.session()]
  for (const session of sessions) await session.run('rollback')
  return sessions
}

/** Begins both, the second while the first is open; ends the first, then the second. */
async function interleave(
  acts: { readonly first: string; readonly second: string },
  ending: string,
  on: Scene,
): Promise<void> {
  const [one, other] = await pair()
  await one.run('begin isolation level read committed')
  await other.run('begin isolation level read committed')
  await ACTS[acts.first]?.(one, on)
  let isOver = false
  const second = (ACTS[acts.second]?.(other, on) ?? Promise.resolve()).finally(() => {
    isOver = true
  })
  await until(async () => isOver || (await other.isWaiting()), { until: 'the second is done or waits for the first' })
  await expectWithinLimit(on)
  await one.run(ending)
  await second
  await expectWithinLimit(on)
  await other.run('commit')
  await expectWithinLimit(on)
}

/** Whatever happened: claims stay within the limit, find all that is left, and use the limit up. */
async function expectHealthy({ limited, running }: Scene): Promise<void> {
  await limited.resume({ tenant: 'acme' })
  await limited.queue.settle(running)
  await limited.reclaim(
    (await database.query<{ id: string }>('select id from :schema.lease where queue = $1', [limited.name])).map(
      ({ id }) => id,
    ),
  )
  await limited.queue.enqueueMany(10)
  for (let round = 0; (await limited.left()) > 0; round += 1) {
    expect(round, 'jobs are left that no claim finds').toBeLessThan(100)
    await limited.makeDue()
    const claim = await limited.queue.claim(5)
    expect(claim.ids, 'no claim gets less than the limit').toHaveLength(Math.min(LIMIT, await limited.left()))
    await limited.queue.settle(claim)
  }
}

describe.each(PAIRS)('$first, and $second meanwhile', (acts) => {
  test.each([
    { ending: 'commit', what: 'a tenant', key: undefined },
    { ending: 'rollback', what: 'a tenant and a key', key: 'k' },
  ])(
    'the limit of $what holds and nothing is forgotten after a $ending (B02, B05, B06, B90)',
    async ({ ending, key }) => {
      const on = await scene(key)
      await interleave(acts, ending, on)
      await expectHealthy(on)
    },
  )
})

test('at the end everything is sound', () => expectSound(database))
