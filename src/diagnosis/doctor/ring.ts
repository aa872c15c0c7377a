import { counted, duration, named } from '../words.js'
import { type Check, number, text } from './check.js'

/** The starvation bound of docs/fairness.md, turn by turn: whoever is ready and has the smaller pass goes first. */
export const starvation: Check = {
  name: 'starvation',
  title: 'No tenant that was ready was passed over.',
  query: 'doctor_starvation',
  describe: (row) =>
    `Tenant ${named(text(row, 'tenant'))}, kind ${named(text(row, 'kind'))}, queue ${named(text(row, 'queue'))}, has been ready for ` +
    `${duration(number(row, 'ready_ms'))} at pass ${round(row['pass'])}, and since then tenant ${named(text(row, 'favoured'))} was given a turn that began ` +
    `at ${round(row['began_at'])} or above.`,
  remedy: () => ({
    sentence:
      'If a weight was raised a moment ago, look again after the next turns; otherwise this is a bug of Tenantry: please report it, with the rows of the table ring.',
  }),
}

export const parked: Check = {
  name: 'parked',
  title: 'No tenant is parked that nothing holds back.',
  query: 'doctor_parked',
  describe: (row) =>
    `Tenant ${named(text(row, 'tenant'))}, kind ${named(text(row, 'kind'))}, queue ${named(text(row, 'queue'))}, has been parked for ` +
    `${duration(number(row, 'parked_ms'))}, and is neither paused nor at a limit.`,
  remedy: () => ({
    sentence:
      'Claims look at parked tenants again one at a time. If it stays, throw the derived tables of the queue away, as docs/operations.md says.',
  }),
}

export const signals: Check = {
  name: 'signals',
  title: 'Claims keep up with signals and notices.',
  query: 'doctor_signals',
  describe: (row) =>
    `${counted(number(row, 'signals'), text(row, 'sort'))} of queue ${named(text(row, 'queue'))}` +
    `${row['kind'] ? `, kind ${named(row['kind'])},` : ''} wait to be folded in by a claim.`,
  remedy: () => ({
    sentence: 'Start a worker for the queue and the kind; each claim folds in 256.',
  }),
}

function round(value: string | null | undefined): string {
  return String(Math.round(Number(value) * 1_000) / 1_000)
}
