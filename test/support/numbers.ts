import type pg from 'pg'
import type { SqlQuery, TextRow } from '../../src/driver/statement.js'
import { AS_TEXT } from '../../src/driver/statement.js'
import { Window } from '../../src/numbers/window.js'
import { NumbersStore } from '../../src/store/numbers-store.js'
import type { TestSchema } from './database.js'

/** What a worker might have counted of one tenant in a minute. */
export interface Counted {
  readonly waitsMs?: readonly number[]
  readonly runsMs?: readonly number[]
  readonly busyMs?: number
  readonly completed?: number
  readonly failed?: number
}

/** A store that records through the pool of the schema. */
export function numbersStore({ schema, pool }: TestSchema): NumbersStore {
  const query = async ({ text, values = [] }: SqlQuery) => {
    const { rows } = await pool.query({ text, values: [...values], types: AS_TEXT as pg.CustomTypesConfig })
    return rows as readonly TextRow[]
  }
  return new NumbersStore({ query }, schema)
}

/** The parts of a window in which a worker has counted this, tenant by tenant. */
export function windowParts(queue: string, minute: number, counted: Readonly<Record<string, Counted>>) {
  const window = new Window()
  for (const [tenant, { waitsMs = [], runsMs = [], busyMs = 0, completed = 0, failed = 0 }] of Object.entries(
    counted,
  )) {
    for (const ms of waitsMs) window.started(tenant, ms)
    for (const ms of runsMs) window.ran(tenant, ms)
    window.busy(tenant, busyMs)
    for (let n = 0; n < completed; n += 1) window.settled(tenant, 'completed')
    for (let n = 0; n < failed; n += 1) window.settled(tenant, 'failed')
  }
  return window.unwritten(queue, minute).map(({ part }) => part)
}

/** The minute of the database's clock in which we are, less `ago`. */
export async function minuteOf(schema: TestSchema, ago = 0): Promise<number> {
  const [row] = await schema.query<{ minute: number }>(
    `select floor(extract(epoch from clock_timestamp()) / 60)::integer - ${ago} as minute`,
  )
  return row?.minute ?? 0
}
