import { ConfigurationError } from '../errors.js'
import { CLAIM_BATCH_MAX, CONCURRENCY_MAX } from '../limits.js'
import { checkKnownOptions, expected, integerOption, nameOption } from '../options.js'
import type { SettleEvent } from '../settle/completer.js'
import type { ClaimEvent } from './claim-loop.js'

/** A job that this worker ran, or was about to, after its lease was lost. Nothing of it was recorded. */
export interface LeaseLostEvent {
  readonly queue: string
  readonly kind: string
  readonly tenant: string
  readonly jobId: string
  readonly attempt: number
  readonly leaseId: string
}

/** Called synchronously while the worker works, so keep them short. What they throw is logged and ignored. */
export interface WorkerObserver {
  readonly claim?: (event: ClaimEvent) => void
  readonly settle?: (event: SettleEvent) => void
  readonly leaseLost?: (event: LeaseLostEvent) => void
  /** Any failed statement and any broken callback, before the log thins them out. */
  readonly error?: (error: unknown) => void
}

export interface WorkerOptions {
  /** The queue to work on. Default 'default'. Give either this or `queues`. */
  readonly queue?: string
  /** Several queues, which share the concurrency evenly while all have work. */
  readonly queues?: readonly string[]
  /** Handlers that run at once in this process. Default 8. */
  readonly concurrency?: number
  /** Jobs in one claim, at most; never more than there are free slots. Default 100. */
  readonly claimBatchMax?: number
  /** Runs only these of the handled kinds: a pool of its own for heavy jobs. Default: every kind with a handler. */
  readonly kinds?: readonly string[]
  /** How long a job stays ours without a heartbeat, and so how long after a crash it waits. Default 30,000. */
  readonly leaseMs?: number
  /** Time between two heartbeats, at most half of the lease. Default: a third of it. */
  readonly heartbeatMs?: number
  /** How long `stop` lets handlers finish before it aborts them. Default 30,000. */
  readonly shutdownTimeoutMs?: number
  /** The first wait after a claim that did not fill the free slots. Default 100. */
  readonly pollMinMs?: number
  /** The longest wait on an idle queue. Default 2,000. */
  readonly pollMaxMs?: number
  /** Whether to use LISTEN. Without it everything works, at the latency of the poll. Default true. */
  readonly listen?: boolean
  /** Longest time between two searches for expired leases, by this worker. Default 4,000. */
  readonly reclaimIntervalMs?: number
  readonly observe?: WorkerObserver
}

/** The options with every default filled in, checked. */
export interface ResolvedWorkerOptions {
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly claimBatchMax: number
  readonly kinds: ReadonlySet<string> | undefined
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly shutdownTimeoutMs: number
  readonly pollMinMs: number
  readonly pollMaxMs: number
  readonly listen: boolean
  readonly reclaimIntervalMs: number
  readonly observe: WorkerObserver
}

/**
 * Concurrency: the second article advises 4 to 8 in one process; 8, since most handlers wait for a network. Batch: it
 * advises claims of 20 to 100; a claim never exceeds the free slots, so this only bounds workers with more than 100.
 * Lease: long enough that a pause of the process or of the database does not cost it, short enough that the jobs of a
 * crashed worker run again within half a minute. Reclaim: the jobs of a crashed worker are found at most this much later.
 */
export const WORKER_DEFAULTS = Object.freeze({
  queue: 'default',
  concurrency: 8,
  claimBatchMax: 100,
  leaseMs: 30_000,
  shutdownTimeoutMs: 30_000,
  pollMinMs: 100,
  pollMaxMs: 2_000,
  listen: true,
  reclaimIntervalMs: 4_000,
})

const HOUR_MS = 3_600_000

/** The database forgets a waiting worker after five minutes, so every worker must look well before. */
export const POLL_MAX_MS = 120_000

const WORKER_OPTIONS = [
  'queue',
  'queues',
  'concurrency',
  'claimBatchMax',
  'kinds',
  'leaseMs',
  'heartbeatMs',
  'shutdownTimeoutMs',
  'pollMinMs',
  'pollMaxMs',
  'listen',
  'reclaimIntervalMs',
  'observe',
] as const satisfies (keyof WorkerOptions)[]

const OBSERVERS = ['claim', 'settle', 'leaseLost', 'error'] as const satisfies (keyof WorkerObserver)[]

export function resolveWorkerOptions(given: WorkerOptions = {}): ResolvedWorkerOptions {
  checkKnownOptions('a worker', given, WORKER_OPTIONS)
  const defaults = WORKER_DEFAULTS
  const integer = (
    name: 'concurrency' | 'claimBatchMax' | 'leaseMs' | 'shutdownTimeoutMs' | 'pollMinMs' | 'reclaimIntervalMs',
    min: number,
    max: number,
  ) => integerOption(name, given[name] ?? defaults[name], { min, max })
  // Below a second a pause of the garbage collector, or one slow commit, would be enough to lose every job.
  const leaseMs = integer('leaseMs', 1_000, 24 * HOUR_MS)
  const pollMinMs = integer('pollMinMs', 10, POLL_MAX_MS)
  return Object.freeze({
    queues: queuesOption(given),
    concurrency: integer('concurrency', 1, CONCURRENCY_MAX),
    claimBatchMax: integer('claimBatchMax', 1, CLAIM_BATCH_MAX),
    kinds: given.kinds === undefined ? undefined : new Set(namesOption('kinds', given.kinds)),
    leaseMs,
    heartbeatMs: heartbeatOption(given.heartbeatMs, leaseMs),
    shutdownTimeoutMs: integer('shutdownTimeoutMs', 0, 24 * HOUR_MS),
    pollMinMs,
    pollMaxMs: pollMaxOption(given.pollMaxMs, pollMinMs),
    listen: booleanOption('listen', given.listen ?? defaults.listen),
    reclaimIntervalMs: integer('reclaimIntervalMs', 100, HOUR_MS),
    observe: observerOption(given.observe),
  })
}

function queuesOption({ queue, queues }: WorkerOptions): readonly string[] {
  if (queue !== undefined && queues !== undefined) {
    throw new ConfigurationError('expected either queue or queues, got both; put all names into queues')
  }
  if (queues !== undefined) return namesOption('queues', queues)
  return [nameOption('queue', queue ?? WORKER_DEFAULTS.queue)]
}

function namesOption(name: string, value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) throw expected(name, 'an array of at least one name', value)
  const names = value.map((element, index) => nameOption(`${name}[${index}]`, element))
  const repeated = names.find((element, index) => names.indexOf(element) !== index)
  if (repeated !== undefined) throw expected(name, 'an array of different names', repeated, 'it is there twice')
  return Object.freeze(names)
}

/** Half a lease at most: then one heartbeat may fail and the next still comes in time. */
function heartbeatOption(value: number | undefined, leaseMs: number): number {
  if (value === undefined) return Math.floor(leaseMs / 3)
  const max = Math.floor(leaseMs / 2)
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw expected('heartbeatMs', `an integer from 1 to ${max}, half of leaseMs`, value, 'raise leaseMs or lower it')
}

function pollMaxOption(value: number | undefined, pollMinMs: number): number {
  if (value === undefined) return Math.max(pollMinMs, WORKER_DEFAULTS.pollMaxMs)
  const pollMaxMs = integerOption('pollMaxMs', value, { min: 10, max: POLL_MAX_MS })
  if (pollMaxMs >= pollMinMs) return pollMaxMs
  throw expected('pollMaxMs', `at least pollMinMs (${pollMinMs})`, value, 'lower pollMinMs as well')
}

function booleanOption(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw expected(name, 'true or false', value)
}

function observerOption(value: WorkerObserver | undefined): WorkerObserver {
  if (value === undefined) return {}
  checkKnownOptions('observe', value, OBSERVERS)
  for (const name of OBSERVERS) {
    if (value[name] !== undefined && typeof value[name] !== 'function') {
      throw expected(`observe.${name}`, 'a function', value[name])
    }
  }
  return value
}
