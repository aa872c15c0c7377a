import { expect, onTestFinished, test } from 'vitest'
import { Tenantry } from './tenantry.js'

function unconnected(): Tenantry {
  const tenantry = new Tenantry({ connectionString: 'postgres://127.0.0.1:1/nowhere' })
  onTestFinished(() => tenantry.close())
  return tenantry
}

test('the options of a worker are checked before anything reads them', () => {
  expect(() => unconnected().worker(null as never)).toThrow(
    'expected the options of a worker to be an object, got null',
  )
})

test('a closed client makes no worker, whose transactions could only fail', async () => {
  const tenantry = unconnected()
  await tenantry.close()
  expect(() => tenantry.worker()).toThrow('this client was closed')
})

test.each(['9223372036854775808', '-1', '1.5', ''])(
  'no job has the id "%s", and the database is not asked',
  async (id) => {
    await expect(unconnected().job(id)).rejects.toThrow('expected the id of a job to be the decimal string')
  },
)

test('a job of enqueueMany that is none is named by its place, before any SQL is sent', async () => {
  await expect(unconnected().enqueueMany([null as never])).rejects.toThrow(
    'expected job 0 of enqueueMany to be an object with definition, payload and tenant, got null',
  )
})
