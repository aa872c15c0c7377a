import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../support/until.js'
import { type Compiled, compile } from './compiled.js'
import { pathOf } from './markdown.js'
import { createDatabase, type Program, run } from './scratch.js'

const names = readdirSync(pathOf('examples')).filter((name) => name.endsWith('.ts'))
let compiled: Compiled

beforeAll(() => {
  compiled = compile(new Map(names.map((name) => [name, readFileSync(pathOf(`examples/${name}`), 'utf8')])))
})

afterAll(() => compiled.remove())

/** Examples work in a database of their own, in the default schema. */
async function start(name: string): Promise<Program> {
  const { connectionString } = await createDatabase()
  return run(join(compiled.folder, `${name}.js`), [], { DATABASE_URL: connectionString })
}

test('every example compiles', () => {
  expect(compiled.errors).toEqual([])
})

/** What each example prints, in any order: the last line of its story. */
const ENDINGS: readonly (readonly [string, string])[] = [
  ['enqueue-in-transaction', 'after the rollback: 1 job'],
  ['exactly-once-effects', 'attempts: 2, payments: 1'],
  ['trigger', 'welcome ada'],
  ['weights', 'of the first 50 jobs, gold had 40 and free had 10'],
  ['batches', 'wrote 20 rows'],
]

test.each(ENDINGS)('the example %s runs to its end and prints "%s"', async (name, ending) => {
  const example = await start(name)
  expect(await example.ended, example.output()).toBe(0)
  expect(example.output()).toContain(ending)
})

test('the example worker works until SIGTERM, and then ends by itself with 0', async () => {
  const example = await start('worker')
  const seen = (text: string) =>
    until(
      () => {
        if (example.process.exitCode !== null) throw new Error(example.output())
        return example.output().includes(text)
      },
      { until: `the example prints "${text}"` },
    )
  await Promise.all(['sent invoice 1', 'cancelled invoice 2', 'discarded invoice 3', 'sent invoice 4'].map(seen))
  example.process.kill('SIGTERM')
  expect(await example.ended, example.output()).toBe(0)
})

test('no example is left out here', () => {
  const tested = [...ENDINGS.map(([name]) => `${name}.ts`), 'worker.ts']
  expect(names.toSorted()).toEqual(tested.toSorted())
})
