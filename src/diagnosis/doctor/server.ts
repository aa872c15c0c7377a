import { duration, named } from '../words.js'
import { type Check, number, text } from './check.js'

/** A transaction of the application's that takes longer holds up vacuum noticeably, in tables that turn over in seconds. */
const OPEN_MS_MAX = 300_000

export const horizon: Check = {
  name: 'horizon',
  title: 'Nothing keeps vacuum from removing dead rows.',
  query: 'doctor_horizon',
  values: [OPEN_MS_MAX],
  describe: (row) => {
    if (row['sort'] === 'replication slot')
      return `The ${row['state']} replication slot ${named(text(row, 'name'))} holds back vacuum by more than 10 million transactions.`
    const who =
      row['sort'] === 'transaction'
        ? `pid ${row['pid']} (${row['name'] || 'no application name'}, ${row['state'] ?? 'state not shown'})`
        : `prepared as ${named(text(row, 'name'))}`
    return `A transaction, ${who}, has been open for ${duration(number(row, 'open_ms'))}.`
  },
  remedy: (row) => {
    if (row['sort'] === 'replication slot') return { sentence: 'Let its replica catch up, or drop the slot.' }
    if (row['sort'] === 'transaction')
      return { sentence: `End the transaction of pid ${row['pid']}, or the session with it.` }
    return { sentence: `Commit or roll back the prepared transaction ${named(text(row, 'name'))}.` }
  },
}

export const locks: Check = {
  name: 'locks',
  title: 'Nobody holds up claims.',
  query: 'doctor_locks',
  describe: (row) => {
    const what =
      row['sort'] === 'queue'
        ? `The lock of queue ${named(text(row, 'name'))} is held`
        : `Table ${named(text(row, 'name'))} is locked`
    const held = row['held_ms'] == null ? '' : ` for ${duration(number(row, 'held_ms'))}`
    return `${what}${held} by pid ${row['pid'] ?? 'unknown'} (${row['application'] || 'no application name'}, ${row['state'] ?? 'state not shown'}).`
  },
  remedy: (row) => ({ sentence: `End the transaction of pid ${row['pid']}, or the session with it.` }),
}

export const vacuum: Check = {
  name: 'vacuum',
  title: 'Autovacuum keeps up.',
  query: 'doctor_vacuum',
  describe: (row) => {
    const rows = `${number(row, 'dead').toLocaleString('en-US')} dead rows, ${number(row, 'live').toLocaleString('en-US')} live`
    const how = row['vacuum'] === 'behind' ? 'Autovacuum is behind on' : `Autovacuum is ${row['vacuum']} of`
    return `${how} table ${named(text(row, 'name'))}: ${rows}.`
  },
  remedy: (row) => {
    if (row['vacuum'] === 'behind')
      return { sentence: 'See what keeps the rows (the check called horizon), then vacuum the table.' }
    return row['vacuum'] === 'off for the server'
      ? { sentence: 'Turn autovacuum and track_counts on in postgresql.conf.' }
      : { sentence: 'Turn it on again: alter table … reset (autovacuum_enabled).' }
  },
}

export const history: Check = {
  name: 'history',
  title: 'The history has partitions for the next days.',
  query: 'doctor_history',
  describe: (row) => `Partition ${named(text(row, 'name'))} is missing.`,
  remedy: () => ({
    sentence:
      'Any worker makes them every five minutes, and the first settlement of a day does at the latest. Start a worker, if none runs.',
  }),
}
