import { duration, named, shellWord } from '../words.js'
import { type Check, number, text } from './check.js'

export const leases: Check = {
  name: 'leases',
  title: 'Every running job has a lease.',
  query: 'doctor_leases',
  describe: (row) =>
    `Job ${text(row, 'job')} of tenant ${named(text(row, 'tenant'))}, queue ${named(text(row, 'queue'))}, has been running for ` +
    `${duration(number(row, 'running_ms'))} under a lease that has no row, so that nobody reclaims it.`,
  remedy: () => ({
    sentence: 'Any worker brings such rows back every five minutes. Start one, if none runs.',
  }),
}

export const reclaim: Check = {
  name: 'reclaim',
  title: 'Leases that ran out are reclaimed.',
  query: 'doctor_reclaim',
  describe: (row) =>
    `A lease of worker ${named(text(row, 'worker'))}, queue ${named(text(row, 'queue'))}, ran out ${duration(number(row, 'expired_ms'))} ago.`,
  remedy: () => ({ sentence: 'Start a worker: any one reclaims for all queues, within four seconds.' }),
}

export const limits: Check = {
  name: 'limits',
  title: 'No more jobs run than the limits allow.',
  query: 'doctor_limits',
  describe: (row) =>
    `${text(row, 'running')} jobs of ${text(row, 'scope')} ${named(text(row, 'name'))}, queue ${named(text(row, 'queue'))}, run, of at most ${text(row, 'allowed')}.`,
  remedy: () => ({
    sentence:
      'If the limit was set or lowered while they ran, they end by themselves and none starts in their place; otherwise this is a bug of Tenantry: please report it.',
  }),
}

export const keys: Check = {
  name: 'keys',
  title: 'No job waits for a key that is free.',
  query: 'doctor_keys',
  describe: (row) =>
    `Job ${text(row, 'job')} has waited for ${duration(number(row, 'waiting_ms'))} for key ${named(text(row, 'key'))} of queue ${named(text(row, 'queue'))}, which nothing holds.`,
  remedy: (row) => ({
    sentence: 'Ask whether its row is locked. Setting the key again tells the next claim to look at it.',
    command: `npx tenantry why ${text(row, 'job')}`,
  }),
}

export const workers: Check = {
  name: 'workers',
  title: 'Every kind with jobs that are due has a worker.',
  query: 'doctor_workers',
  describe: (row) => {
    const available = number(row, 'available')
    const jobs =
      available >= 1_000
        ? 'at least 1,000 available jobs'
        : `${available} available ${available === 1 ? 'job' : 'jobs'}`
    return `Kind ${named(text(row, 'kind'))} of queue ${named(text(row, 'queue'))} has jobs that are due (${jobs}), and no worker knows it.`
  },
  remedy: () => ({ sentence: 'Start a worker for the queue with a handler for the kind.' }),
}

export const objectives: Check = {
  name: 'objectives',
  title: 'Service objectives are met.',
  query: 'doctor_objectives',
  describe: (row) =>
    `Of tenant ${named(text(row, 'tenant'))}, queue ${named(text(row, 'queue'))}, ${percent(row['objective_reached'])} of the jobs started within ` +
    `${duration(number(row, 'objective_wait_ms'))}; the objective is ${percent(row['objective_share'])}.`,
  remedy: (row) => ({
    sentence: 'See what its next job waits for.',
    command: `npx tenantry why --tenant ${shellWord(text(row, 'tenant'))} --queue ${shellWord(text(row, 'queue'))}`,
  }),
}

function percent(share: string | null | undefined): string {
  return `${Math.round(Number(share) * 10_000) / 100} %`
}
