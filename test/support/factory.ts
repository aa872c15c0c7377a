import type { NewJob } from '../../src/job/job.js'

/** A job like any other; a test names only what it is about. */
export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    queue: 'default',
    kind: 'send-invoice',
    tenant: 'acme',
    payload: '{}',
    priority: 0,
    maxAttempts: 5,
    ...overrides,
  }
}

/** `count` jobs that differ in their payload only, which is their number from 0. */
export function newJobs(count: number, overrides: Partial<NewJob> = {}): NewJob[] {
  return Array.from({ length: count }, (_, number) => newJob({ payload: `{"number":${number}}`, ...overrides }))
}

let names = 0

/** A name that no other test of this file has. */
export function uniqueName(word: string): string {
  names += 1
  return `${word}-${names}`
}
