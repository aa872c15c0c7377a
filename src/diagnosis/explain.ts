import { unreachable } from '../assert.js'
import type { Reason, RunningFacts } from './why.js'
import { counted, duration, errorWords, holdersWords, listed, named } from './words.js'

type Of<Rule extends Reason['rule']> = Extract<Reason, { readonly rule: Rule }>

/** The rule and its facts in sentences that can be read aloud. */
export function explain(reason: Reason): string {
  switch (reason.rule) {
    case 'unknown':
      return `There is no job ${reason.job}: it was never committed, or its history is gone.`
    case 'finished':
      return explainFinished(reason)
    case 'running':
      return explainRunning(reason)
    case 'scheduled':
      return explainScheduled(reason)
    case 'no_jobs':
      return explainNoJobs(reason)
    case 'table_locked':
      return `Table ${named(reason.table)} is locked in mode ${reason.mode} by ${holdersWords(reason.holders)}; no claim can work until that transaction ends.`
    case 'queue_paused':
      return `Queue ${named(reason.queue)} has been paused for ${duration(reason.sinceMs)}; nothing of it starts.`
    case 'kind_paused':
      return `Kind ${named(reason.kind)} of queue ${named(reason.queue)} has been paused for ${duration(reason.sinceMs)}; no job of it starts.`
    case 'tenant_paused':
      return `Tenant ${named(reason.tenant)} of queue ${named(reason.queue)} has been paused for ${duration(reason.sinceMs)}; none of its jobs starts.`
    case 'no_worker':
      return explainNoWorker(reason)
    case 'queue_locked':
      return `The lock of queue ${named(reason.queue)} is held by ${holdersWords(reason.holders)}; every claim of the queue waits for it.`
    case 'row_locked':
      return `The row of job ${reason.job} is locked by ${holdersWords(reason.holders)}; claims step over it until that transaction ends.`
    case 'key_limit':
    case 'key_retry':
    case 'key_rate':
      return explainKey(reason)
    case 'queue_limit':
    case 'kind_limit':
    case 'tenant_limit':
      return explainLimit(reason)
    case 'queue_rate':
    case 'kind_rate':
    case 'tenant_rate':
      return explainRate(reason)
    case 'slots_busy':
      return `${busyWords(reason)} ${explainTurns(reason)}`
    case 'turns':
      return `${explainTurns(reason)} ${reason.busy} of ${counted(reason.slots, 'slot')} ${reason.busy === 1 ? 'is' : 'are'} busy.`
    case 'next':
      return `Nothing holds job ${reason.job} back: it is the next of its queue, and the next claim takes it.`
    default:
      return unreachable(reason)
  }
}

function explainFinished({ job, state, attempt, finalizedAt, error }: Of<'finished'>): string {
  const after = attempt > 0 ? ` after ${counted(attempt, 'attempt')}` : ''
  const failure = error ? ` ${errorWords(error)}` : ''
  return `Job ${job} was ${state} at ${finalizedAt.toISOString()}${after}.${failure}`
}

function explainRunning({ job, attempt, maxAttempts, runningMs, worker, lease, leaseUntil }: Of<'running'>): string {
  const runs = `Job ${job} runs: attempt ${attempt} of ${maxAttempts}, for ${duration(runningMs)}`
  if (lease === 'missing') return `${runs}, under a lease that has no row, so that nobody would reclaim it.`
  if (lease === 'expired') {
    return `${runs}, on worker ${named(worker ?? '')}, whose lease has run out; any worker reclaims it within seconds.`
  }
  return `${runs}, on worker ${named(worker ?? '')}, whose lease holds until ${leaseUntil?.toISOString() ?? 'it is extended'}.`
}

function explainScheduled({ job, runAt, dueMs, ranBefore, attempt, maxAttempts, error }: Of<'scheduled'>): string {
  const due = `in ${duration(dueMs)}, at ${runAt.toISOString()}`
  if (!ranBefore) return `Job ${job} is scheduled: it is due ${due}.`
  const failure = error && error.attempt === attempt ? ` ${errorWords(error)}` : ''
  return failure
    ? `Job ${job} waits for attempt ${attempt + 1} of ${maxAttempts}, which is due ${due}.${failure}`
    : `Job ${job} snoozes: it is due again ${due}.`
}

function explainNoJobs({ queue, tenant, kind, running, oldest }: Of<'no_jobs'>): string {
  const what = kind === null ? 'No job' : `No job of kind ${named(kind)}`
  const runs = running === 0 ? 'none runs' : `${counted(running, 'job')} of it ${running === 1 ? 'runs' : 'run'}`
  return `${what} of tenant ${named(tenant)} waits in queue ${named(queue)}; ${runs}.${oldestWords(oldest)}`
}

function explainNoWorker({ queue, kind, workers, knownKinds, lastSeenAt }: Of<'no_worker'>): string {
  const seen = lastSeenAt ? ` One that did was last seen at ${lastSeenAt.toISOString()}.` : ''
  if (workers === 0) return `No worker claims from queue ${named(queue)}.${seen}`
  const known = knownKinds.length > 0 ? listed(knownKinds) : 'none'
  const they = workers === 1 ? 'The one worker' : `None of the ${workers} workers`
  const verb = workers === 1 ? 'does not know' : 'knows'
  return `${they} of queue ${named(queue)} ${verb} kind ${named(kind)}; kinds that are known: ${known}.${seen}`
}

function explainKey(reason: Of<'key_limit'> | Of<'key_retry'> | Of<'key_rate'>): string {
  const key = named(reason.key)
  if (reason.rule === 'key_rate') {
    const others =
      reason.before > 0
        ? ` ${counted(reason.before, 'job')} of the key ${reason.before === 1 ? 'comes' : 'come'} first.`
        : ''
    return `Key ${key} has used up its rate of ${reason.perSecond} a second; the token for this job is due in ${duration(reason.tokenMs)}.${others}`
  }
  if (reason.rule === 'key_retry') {
    const failure = reason.error ? ` ${errorWords(reason.error)}` : ''
    return `Jobs of key ${key} run strictly one after another, and job ${reason.retrying}, which comes first, waits for its next attempt: due in ${duration(reason.dueMs)}.${failure}`
  }
  if (reason.limit === 0) return `The limit of key ${key} is 0, which lets none of its jobs start.`
  const holders = reason.holders.map(({ job, state }) => `${job} (${state})`).join(', ')
  const held = holders ? ` It is held by job ${holders}.` : ''
  const before =
    reason.before > 0
      ? ` ${counted(reason.before, 'job')} of the key ${reason.before === 1 ? 'comes' : 'come'} first.`
      : ''
  const limit = reason.limit === 1 ? 'one job at a time' : `${reason.limit} jobs at a time`
  return `Key ${key} allows ${limit}.${held}${before}`
}

function explainLimit(reason: Of<'queue_limit'> | Of<'kind_limit'> | Of<'tenant_limit'>): string {
  const who = subjectOf(reason)
  if (reason.limit === 0) return `The limit of ${who} is 0, which lets nothing of it start.`
  const running = reason.running > reason.limit ? `more than ${reason.limit}` : String(reason.running)
  return `${capital(who)} is at its limit: ${running} of at most ${reason.limit} run.${oldestWords(reason.oldest)}`
}

function explainRate(reason: Of<'queue_rate'> | Of<'kind_rate'> | Of<'tenant_rate'>): string {
  const { perSecond, burst, tokenMs } = reason
  return `${capital(subjectOf(reason))} has used up its rate of ${perSecond} a second (burst ${burst}); the next token is due in ${duration(tokenMs)}.`
}

function busyWords({ slots, workers, kind }: Of<'slots_busy'>): string {
  const whose = workers === 1 ? 'the one worker that knows' : `the ${workers} workers that know`
  return `${slots === 1 ? 'The only slot' : `All ${counted(slots, 'slot')}`} of ${whose} kind ${named(kind)} ${slots === 1 ? 'is' : 'are'} busy.`
}

function explainTurns(reason: Of<'slots_busy'> | Of<'turns'> | Of<'next'>): string {
  const { job, ownBefore, tenantsBefore, othersBefore, group, jobsBefore, countedToTheEnd, strategy } = reason
  if (jobsBefore === 0) return `Job ${job} is the next one.`
  const about = !countedToTheEnd ? 'at least' : strategy === 'fair' ? 'at most' : 'exactly'
  const sources = [
    ...(ownBefore > 0 ? [`${ownBefore.toLocaleString('en-US')} of the same tenant`] : []),
    ...(tenantsBefore > 0
      ? [`those of ${counted(tenantsBefore, 'other tenant')}${group ? ` of group ${named(group)}` : ''}`]
      : []),
    ...(othersBefore ? [`those of ${counted(othersBefore, 'other group or tenant')}`] : []),
  ]
  const from = sources.length > 0 ? `: ${sources.join(', and ')}` : ''
  return `${capital(about)} ${counted(jobsBefore, 'job')} ${jobsBefore === 1 ? 'starts' : 'start'} before job ${job}${from}.`
}

function subjectOf(reason: {
  readonly rule: string
  readonly queue: string
  readonly kind: string
  readonly tenant: string
}): string {
  if (reason.rule.startsWith('queue')) return `queue ${named(reason.queue)}`
  const name = reason.rule.startsWith('kind') ? `kind ${named(reason.kind)}` : `tenant ${named(reason.tenant)}`
  return `${name} of queue ${named(reason.queue)}`
}

function oldestWords(oldest: readonly RunningFacts[]): string {
  const [first] = oldest
  return first ? ` Job ${first.job} has been running longest, for ${duration(first.runningMs)}.` : ''
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
