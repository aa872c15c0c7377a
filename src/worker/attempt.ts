import { assert } from '../assert.js'
import type { JobDefinition } from '../job/define-job.js'
import type { Job } from '../job/job.js'
import { validate } from '../job/standard-schema.js'
import type { HeldJob } from '../lease/held-leases.js'
import type { Logger } from '../logger.js'
import type { AttemptResult } from '../settle/decide.js'
import { batchContext, Exits, jobContext } from './context.js'
import { batchResults } from './handlers.js'
import type { Run } from './run.js'

/** A job whose payload is what its handler expects. */
interface Ready {
  readonly held: HeldJob
  readonly job: Job
}

/** A job whose payload was refused, or could not be checked. */
interface Unready {
  readonly held: HeldJob
  readonly result: AttemptResult
}

/** Validates the payloads, calls the handler with those that passed, and answers with a result for each job in order. */
export async function attempt(run: Run, log: Logger): Promise<readonly AttemptResult[]> {
  const { definition } = run.registration
  const prepared = await Promise.all(run.jobs.map((held) => prepare(held, definition)))
  const ready = prepared.filter((one) => 'job' in one)
  const results = ready.length === 0 ? [] : await callHandler(run, ready, log)
  const byJob = new Map(ready.map(({ held }, index) => [held, results[index]]))
  return prepared.map((one) => ('result' in one ? one.result : (byJob.get(one.held) ?? missingResult)))
}

const missingResult: AttemptResult = { type: 'threw', error: new Error('the handler gave no result for this job') }

async function callHandler(run: Run, ready: readonly Ready[], log: Logger): Promise<readonly AttemptResult[]> {
  const { registration, transaction } = run
  const jobs = ready.map(({ job }) => job)
  const exits = new Exits()
  if (registration.type === 'batch') {
    const helds = ready.map(({ held }) => held)
    const result = await registration.handler(jobs, batchContext(helds, log, { exits, kind: run.kind }))
    exits.checkReturned(result)
    return batchResults(jobs, result)
  }
  const [first] = ready
  assert(first && transaction, 'a run of a single job has the job and its transaction')
  const value = await registration.handler(first.job, jobContext(first.held, log, { exits, transaction }))
  exits.checkReturned(value)
  return [{ type: 'returned', value }]
}

/** What was valid when it was enqueued need not be valid for the code of today. */
async function prepare(held: HeldJob, definition: JobDefinition): Promise<Ready | Unready> {
  try {
    // Lost while it waited for its batch: to start it now would only run it twice.
    held.abort.signal.throwIfAborted()
    if (!definition.payload) return { held, job: held.job }
    const validation = await validate(definition.payload, held.job.payload)
    if ('value' in validation) return { held, job: { ...held.job, payload: validation.value } }
    return { held, result: { type: 'payload-refused', issues: validation.issues } }
  } catch (error) {
    return { held, result: { type: 'threw', error } }
  }
}
