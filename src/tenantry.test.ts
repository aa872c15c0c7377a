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

test('a job of enqueueMany that is none is named by its place, before any SQL is sent', async () => {
  await expect(unconnected().enqueueMany([null as never])).rejects.toThrow(
    'expected job 0 of enqueueMany to be an object with definition, payload and tenant, got null',
  )
})
