import { expect, test } from 'vitest'
import { useSharedDatabase } from '../support/claims.js'
import { databaseErrorOf } from '../support/expect.js'

const database = useSharedDatabase()

/** Calls the public SQL function as psql would: everything is text. */
async function enqueue(kind: string | null, payload: string | null, tenant: string | null, options?: string) {
  const text = options === undefined ? '' : `, $4::jsonb`
  const values = [kind, payload, tenant, ...(options === undefined ? [] : [options])]
  return database.value<string>(`select :schema.enqueue($1, $2::jsonb, $3${text})::text`, values)
}

test('SQL enqueues with a kind, a payload and a tenant, and the defaults are those of the library', async () => {
  const id = await enqueue('send-invoice', '{"invoiceId": "42"}', 'acme')
  const queue = database.queue('default')
  expect(await queue.record(id)).toMatchObject({
    kind: 'send-invoice',
    payload: { invoiceId: '42' },
    tenant: 'acme',
    queue: 'default',
    priority: 0,
    maxAttempts: 20,
    state: 'available',
  })
  expect((await queue.claim()).ids).toEqual([id])
})

test('every option has an effect', async () => {
  const queue = database.queue()
  const name = JSON.stringify(queue.name)
  const plain = await queue.record(
    await enqueue('k', '1', 't', `{"queue": ${name}, "priority": -5, "max_attempts": 10000}`),
  )
  expect(plain).toMatchObject({ queue: queue.name, priority: -5, maxAttempts: 10_000 })
  const timed = await queue.record(
    await enqueue('k', '1', 't', `{"queue": ${name}, "run_at": "2031-02-03T04:05:06+02"}`),
  )
  expect(timed).toMatchObject({ state: 'scheduled', runAt: new Date('2031-02-03T02:05:06Z') })
  const delayed = await enqueue('k', '1', 't', `{"queue": ${name}, "delay_ms": 1500.5}`)
  expect(await database.value('select (run_at - created_at)::text from :schema.job where id = $1', [delayed])).toBe(
    '00:00:01.5005',
  )
})

test('an option that is null is an option that is not given, and so are no options at all', async () => {
  const nulls = '{"queue": null, "priority": null, "run_at": null, "delay_ms": null, "max_attempts": null}'
  for (const options of [nulls, '{}']) {
    const id = await enqueue('k', 'null', 't', options)
    expect(await database.store.job(id)).toMatchObject({
      queue: 'default',
      priority: 0,
      payload: null,
      maxAttempts: 20,
    })
  }
  expect(await database.value(`select :schema.enqueue('k', '1', 't', null) > 0`)).toBe(true)
})

test('a job with a key waits for it', async () => {
  const id = await database.value<string>(`select :schema.enqueue('k', '1', 't', '{"key": "account-7"}')::text`)
  expect(await database.store.job(id)).toMatchObject({ key: 'account-7', state: 'blocked' })
})

test('arguments can be given by name', async () => {
  const text = `select :schema.enqueue(tenant => 'acme', payload => '[1]', kind => 'k', options => '{"priority": 3}')::text`
  expect(await database.store.job(await database.value(text))).toMatchObject({
    tenant: 'acme',
    priority: 3,
    payload: [1],
  })
})

test.each([
  ['', '1', 't', '{}', 'expected kind to be a text of 1 to 255 bytes'],
  [null, '1', 't', '{}', 'expected kind to be a text of 1 to 255 bytes, got null'],
  ['k'.repeat(256), '1', 't', '{}', 'expected kind to be a text of 1 to 255 bytes'],
  ['k', '1', '', '{}', 'expected tenant to be a text of 1 to 255 bytes'],
  ['k', '1', null, '{}', 'expected tenant to be a text of 1 to 255 bytes, got null'],
  ['k', '1', 'ж'.repeat(128), '{}', 'expected tenant to be a text of 1 to 255 bytes'],
  ['k', '1', 't', '{"queue": ""}', 'expected queue to be a text of 1 to 255 bytes'],
  ['k', null, 't', '{}', `expected payload to be JSON, got null; pass 'null'::jsonb for the JSON value null`],
  ['k', '1', 't', '{"priority": 1001}', 'expected priority to be an integer from -1000 to 1000, got 1001'],
  ['k', '1', 't', '{"priority": 0.5}', 'expected priority to be an integer from -1000 to 1000, got 0.5'],
  ['k', '1', 't', '{"priority": "high"}', 'expected priority to be a number, got "high"'],
  ['k', '1', 't', '{"priority": true}', 'expected priority to be a number, got true'],
  ['k', '1', 't', '{"max_attempts": 0}', 'expected max_attempts to be an integer from 1 to 10000, got 0'],
  ['k', '1', 't', '{"max_attempts": 1e9}', 'expected max_attempts to be an integer from 1 to 10000'],
  ['k', '1', 't', '{"delay_ms": -1}', 'expected delay_ms to be from 0 to 315360000000 (ten years), got -1'],
  ['k', '1', 't', '{"delay_ms": 1e300}', 'expected delay_ms to be from 0 to 315360000000 (ten years)'],
  ['k', '1', 't', '{"key": ""}', "expected key to be a text of 1 to 255 bytes, got ''"],
  ['k', '1', 't', '{"key": 5}', 'expected key to be a string, got 5'],
  ['k', '1', 't', '{"queue": 5}', 'expected queue to be a string, got 5'],
  ['k', '1', 't', '{"run_at": 1767225600}', 'expected run_at to be a string, got 1767225600'],
  ['k', '1', 't', '{"run_at": "infinity"}', 'expected run_at to be a time in the years 1 to 9999, got infinity'],
  ['k', '1', 't', '{"run_at": "-infinity"}', 'expected run_at to be a time in the years 1 to 9999, got -infinity'],
  ['k', '1', 't', '{"run_at": "10000-01-01"}', 'expected run_at to be a time in the years 1 to 9999'],
  [
    'k',
    '1',
    't',
    '{"tenants": 5}',
    'expected options to be among queue, priority, run_at, delay_ms, max_attempts, key, got "tenants"',
  ],
  ['k', '1', 't', '{"runAt": "2031-01-01"}', 'got "runAt"'],
] as const)(
  'enqueue(%j, %s, %j, %s) is refused with a sentence that says what is expected',
  async (kind, payload, tenant, options, sentence) => {
    const error = await databaseErrorOf(enqueue(kind, payload, tenant, options))
    expect(error.message).toContain(sentence)
    expect(error.code).toBe('22023')
  },
)

test('a time that is none is refused by PostgreSQL', async () => {
  const error = await databaseErrorOf(enqueue('k', '1', 't', '{"run_at": "soon"}'))
  expect(error).toMatchObject({ code: '22007', message: expect.stringContaining('"soon"') })
})

test('a payload may have 262,144 bytes and not one more', async () => {
  const largest = JSON.stringify('ж'.repeat(131_071))
  const id = await enqueue('k', largest, 't')
  expect((await database.store.job(id))?.payload).toBe(JSON.parse(largest))
  const error = await databaseErrorOf(enqueue('k', JSON.stringify(`${'ж'.repeat(131_071)}x`), 't'))
  expect(error.message).toContain('expected payload to be at most 262144 bytes of JSON, got 262145')
})

test('a trigger enqueues in the transaction of the row that fired it', async () => {
  const queue = database.queue()
  await database.query(`create table :schema.invoice (id int primary key, customer text)`)
  await database.query(`
    create function :schema.on_invoice() returns trigger language plpgsql as $$
    begin
      perform :schema.enqueue('send-invoice', to_jsonb(new), new.customer, '{"queue": "${queue.name}"}');
      return new;
    end $$`)
  await database.query(
    'create trigger send after insert on :schema.invoice for each row execute function :schema.on_invoice()',
  )
  await database.query(`insert into :schema.invoice select n, 'customer-' || n from generate_series(1, 3) as n`)
  const failed = database.query(`insert into :schema.invoice values (4, 'customer-4'), (1, 'twice')`)
  expect(await databaseErrorOf(failed)).toMatchObject({ code: '23505' })
  const jobs = await queue.claimAll(10)
  expect(
    jobs.map(({ payload, tenant }) => ({ payload, tenant })).sort((a, b) => (a.tenant < b.tenant ? -1 : 1)),
  ).toEqual([1, 2, 3].map((id) => ({ payload: { id, customer: `customer-${id}` }, tenant: `customer-${id}` })))
})

test('a savepoint protects the transaction of a caller whose enqueue is refused (B52)', async () => {
  const queue = database.queue()
  const client = await database.schema.connect()
  await client.query('begin')
  await client.query(database.sql(`select :schema.enqueue('k', '1', 't', '{"queue": "${queue.name}"}')`))
  await client.query('savepoint refused')
  await databaseErrorOf(client.query(database.sql(`select :schema.enqueue('', '1', 't')`)))
  await client.query('rollback to refused')
  await client.query('commit')
  expect((await queue.claim(2, { kinds: ['k'] })).jobs).toHaveLength(1)
})
