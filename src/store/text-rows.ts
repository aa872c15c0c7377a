import { AS_TEXT, type TextRow } from '../driver/statement.js'
import type { Queryable } from './store.js'

/** Runs a statement on somebody's client, unnamed, and reads every column as text, whatever type parsers are set. */
export async function textRows(
  client: Queryable,
  text: string,
  values: readonly unknown[],
): Promise<readonly TextRow[]> {
  const { rows } = await client.query({ text, values: [...values], types: AS_TEXT })
  return rows as readonly TextRow[]
}
