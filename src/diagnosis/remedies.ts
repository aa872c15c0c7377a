import { configure, resume } from './calls.js'
import type { HolderFacts, Reason, Remedy } from './why.js'
import { duration, literal, named, shellWord } from './words.js'

type Of<Rule extends Reason['rule']> = Extract<Reason, { readonly rule: Rule }>

/** What would change the rule that binds, the most direct first; none where nothing needs to be done. */
export function remediesOf(reason: Reason): readonly Remedy[] {
  switch (reason.rule) {
    case 'queue_paused':
      return [resume(reason.queue, {})]
    case 'kind_paused':
      return [resume(reason.queue, { kind: reason.kind })]
    case 'tenant_paused':
      return [resume(reason.queue, { tenant: reason.tenant })]
    case 'no_worker':
      return noWorker(reason)
    case 'queue_locked':
    case 'row_locked':
    case 'table_locked':
      return reason.holders.map(endTransaction)
    case 'key_limit':
    case 'key_retry':
      return key(reason)
    case 'queue_limit':
    case 'kind_limit':
    case 'tenant_limit':
      return limit(reason)
    case 'queue_rate':
    case 'kind_rate':
    case 'tenant_rate':
    case 'key_rate':
      return rate(reason)
    case 'slots_busy':
    case 'turns':
      return turns(reason)
    case 'scheduled':
      return scheduled(reason)
    case 'finished':
      return finished(reason)
    case 'running':
      return running(reason)
    default:
      return []
  }
}

function noWorker({ queue, kind, workers, knownKinds }: Of<'no_worker'>): readonly Remedy[] {
  const call = `tenantry.worker({ queues: [${literal(queue)}] }).handle(defineJob({ kind: ${literal(kind)} }), handler)`
  const start: Remedy = {
    sentence: `Start a worker for queue ${named(queue)} with a handler for kind ${named(kind)}.`,
    call,
  }
  if (workers === 0 || knownKinds.length === 0) return [start]
  const kinds = 'If the name is a mistake of whoever enqueued it, cancel the job and enqueue it under the right one.'
  return [start, { sentence: kinds }]
}

function endTransaction({ pid, prepared }: HolderFacts): Remedy {
  if (prepared !== undefined) {
    const statement = `rollback prepared '${prepared.replaceAll("'", "''")}'`
    return {
      sentence: `Commit or roll back the prepared transaction ${named(prepared)}.`,
      command: `psql -c ${shellWord(statement)}`,
    }
  }
  return {
    sentence: `End the transaction of pid ${pid}, or the session with it.`,
    command: `psql -c ${shellWord(`select pg_terminate_backend(${pid})`)}`,
  }
}

function key(reason: Of<'key_limit'> | Of<'key_retry'>): readonly Remedy[] {
  const raise = configure(
    reason.own || reason.limit === 0
      ? { scope: 'key', queue: reason.queue, name: reason.key }
      : { scope: 'queue', queue: reason.queue },
    { name: reason.own || reason.limit === 0 ? 'concurrency' : 'keyConcurrency', value: reason.limit + 1 },
    reason.limit === 0
      ? 'Let one job of the key run at a time.'
      : `Let ${reason.limit + 1} jobs of the key run at once, which gives up their order.`,
  )
  if (reason.rule === 'key_retry') {
    const cancel = `Or cancel job ${reason.retrying}, if the others need not wait for it.`
    return [
      { sentence: `It goes on in ${duration(reason.dueMs)}, with job ${reason.retrying}.` },
      {
        sentence: cancel,
        command: `npx tenantry jobs cancel ${reason.retrying}`,
        call: `await tenantry.cancel('${reason.retrying}')`,
      },
      raise,
    ]
  }
  const waiting = reason.holders.find(({ state }) => state === 'available')
  if (waiting) return [askAbout(waiting.job, 'has the key and waits itself'), raise]
  if (reason.holders.length === 0 && reason.first !== null)
    return [askAbout(reason.first, 'comes first and waits too'), raise]
  return reason.limit > 0 ? [{ sentence: 'It goes on when a job that has the key ends.' }, raise] : [raise]
}

function askAbout(job: string, how: string): Remedy {
  return {
    sentence: `Job ${job} ${how}: ask why.`,
    command: `npx tenantry why ${job}`,
    call: `await tenantry.why({ job: '${job}' })`,
  }
}

function limit(reason: Of<'queue_limit'> | Of<'kind_limit'> | Of<'tenant_limit'>): readonly Remedy[] {
  const value = Math.min(1_000_000, Math.max(reason.running, reason.limit) + 1)
  const raise = configure(
    targetOf(reason),
    { name: settingOf(reason, 'concurrency'), value },
    'Raise or remove the limit.',
  )
  return reason.limit === 0 ? [raise] : [{ sentence: 'It goes on when one of the running jobs ends.' }, raise]
}

function rate(reason: Of<'queue_rate'> | Of<'kind_rate'> | Of<'tenant_rate'> | Of<'key_rate'>): readonly Remedy[] {
  const value = { limit: Math.min(1_000_000, reason.perSecond * 2) }
  const raise = configure(targetOf(reason), { name: settingOf(reason, 'rate'), value }, 'Raise or remove the rate.')
  return [{ sentence: `It goes on in ${duration(reason.tokenMs)}.` }, raise]
}

/** Whose setting it is: that of the queue counts for every tenant and key without one of its own. */
function targetOf(
  reason:
    | Of<'queue_limit' | 'queue_rate'>
    | Of<'kind_limit' | 'kind_rate'>
    | Of<'tenant_limit' | 'tenant_rate'>
    | Of<'key_rate'>,
) {
  const { queue } = reason
  if (reason.rule.startsWith('kind')) return { scope: 'kind', queue, name: reason.kind } as const
  if ('own' in reason && reason.own) {
    return reason.rule === 'key_rate'
      ? ({ scope: 'key', queue, name: reason.key } as const)
      : ({ scope: 'tenant', queue, name: reason.tenant } as const)
  }
  return { scope: 'queue', queue } as const
}

function settingOf(reason: { readonly rule: string; readonly own?: boolean }, setting: 'concurrency' | 'rate'): string {
  if (reason.own !== false) return setting
  const prefix = reason.rule.startsWith('key') ? 'key' : 'tenant'
  return `${prefix}${setting.slice(0, 1).toUpperCase()}${setting.slice(1)}`
}

function turns(reason: Of<'slots_busy'> | Of<'turns'> | Of<'next'>): readonly Remedy[] {
  const slots = 'Give the workers more slots (`concurrency`), or start another worker process.'
  const weight = 'Give its tenant a larger weight, if it is to have more than the others.'
  if (reason.strategy !== 'fair' || reason.tenantsBefore === 0) return [{ sentence: slots }]
  return [
    { sentence: slots },
    configure({ scope: 'tenant', queue: reason.queue, name: reason.tenant }, { name: 'weight', value: 2 }, weight),
  ]
}

function scheduled({ job, dueMs }: Of<'scheduled'>): readonly Remedy[] {
  return [
    { sentence: `It starts by itself when it is due, in ${duration(dueMs)}.` },
    {
      sentence: 'Cancel it if it is not wanted any more.',
      command: `npx tenantry jobs cancel ${job}`,
      call: `await tenantry.cancel('${job}')`,
    },
  ]
}

function finished({ job, state }: Of<'finished'>): readonly Remedy[] {
  if (state === 'completed') return []
  return [
    {
      sentence: 'Look at what happened, and enqueue it again if it is still wanted.',
      command: `npx tenantry jobs show ${job}`,
    },
  ]
}

function running({ lease }: Of<'running'>): readonly Remedy[] {
  if (lease === 'held') return []
  if (lease === 'expired') return [{ sentence: 'Start a worker, if none runs: each of them reclaims for all queues.' }]
  return [
    {
      sentence: 'Any worker brings the row back within five minutes, and reclaims the job then.',
      command: 'npx tenantry doctor',
    },
  ]
}
