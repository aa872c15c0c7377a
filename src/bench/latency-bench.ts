import { delay, machineClockMs } from '../clock.js'
import { createClient, endClient } from '../driver/client.js'
import { systemRandom } from '../random.js'
import { Tenantry } from '../tenantry.js'
import { rejectionOf } from '../workload/run.js'
import { type Distribution, distributionOf } from '../workload/statistics.js'
import { WorkerPool } from '../workload/worker-pool.js'
import { workloadJob } from '../workload/workload-job.js'
import { type BenchEnvironment, environmentOf } from './environment.js'
import { HandlerStarts } from './handler-starts.js'
import type { BenchServer } from './server.js'
import { SLOT_VARIANTS, type SlotResult, sampleSlot } from './slot-latency.js'

export interface LatencyBenchOptions {
  /** Jobs enqueued with LISTEN, and of each limit; by polling a third as many, since each takes a second. */
  readonly samples: number
  readonly signal: AbortSignal
  readonly onSample?: (done: number, total: number) => void
}

export interface LatencyResult {
  readonly wakeUp: 'listen' | 'poll'
  readonly samples: number
  /**
   * From just before COMMIT is sent to the start of the handler in another process: with all that the commit waits for,
   * such as the disk. An upper bound, since nothing can be found before it is committed.
   */
  readonly commitToStartMs: Distribution
  /**
   * From the moment when the commit was known to whoever enqueued. What the queue adds to a commit, and so what the targets
   * are stated for. Below zero when the handler started before that news had arrived.
   */
  readonly confirmationToStartMs: Distribution
}

export interface LatencyTarget {
  /** What was measured, in words. */
  readonly measured: string
  readonly percentile: 'p50' | 'p99'
  readonly ms: number
  readonly mostMs: number
  readonly met: boolean
}

export interface LatencyBenchResult {
  readonly results: readonly LatencyResult[]
  readonly slots: readonly SlotResult[]
  readonly targets: readonly LatencyTarget[]
  readonly environment: BenchEnvironment
}

const TARGETS_MS = { p50: 3, p99: 15 } as const

/** From the end of a job to the start of the next one that waited for its slot. */
const SLOT_TARGET_MS = 50

/** Long enough for the queue to be idle again, and of no rhythm that a timer of the worker could have. */
const LISTEN_GAP_MS = { min: 10, max: 150 }

/** Long enough for the poll to be at its slowest. Measured in several queues at a time, since nothing happens in between. */
const POLL_GAP_MS = { min: 1_000, max: 3_000 }
const POLL_QUEUES = 6

/** How long an idle queue takes to start a job in another process. */
export async function benchLatency(server: BenchServer, options: LatencyBenchOptions): Promise<LatencyBenchResult> {
  const { session, connectionString, newSchema } = server
  const environment = await environmentOf(server)
  const schema = newSchema()
  await session.migrate(schema)
  const pollSamples = Math.ceil(options.samples / 3 / POLL_QUEUES)
  const total = options.samples + pollSamples * POLL_QUEUES + SLOT_VARIANTS.length * (options.samples + 1)
  let done = 0
  const onSample = () => {
    done += 1
    options.onSample?.(done, total)
  }
  const { signal } = options
  const common = { connectionString, schema, signal, interrupted: rejectionOf(signal), onSample }
  const listened = await sample({
    ...common,
    queue: 'listen',
    listen: true,
    samples: options.samples,
    gapMs: LISTEN_GAP_MS,
  })
  const polled = await Promise.all(
    Array.from({ length: POLL_QUEUES }, (_, index) =>
      sample({ ...common, queue: `poll-${index}`, listen: false, samples: pollSamples, gapMs: POLL_GAP_MS }),
    ),
  )
  const results = [resultOf('listen', listened), resultOf('poll', polled.flat())]
  const slots: SlotResult[] = []
  for (const variant of SLOT_VARIANTS) {
    slots.push(await sampleSlot(variant, { ...common, samples: options.samples }))
  }
  return { results, slots, targets: [...targetsOf(results), ...slots.map(slotTarget)], environment }
}

interface SampleOptions {
  readonly connectionString: string
  readonly schema: string
  readonly queue: string
  readonly listen: boolean
  readonly samples: number
  readonly gapMs: { readonly min: number; readonly max: number }
  readonly signal: AbortSignal
  /** Rejects when the signal aborts. */
  readonly interrupted: Promise<never>
  readonly onSample: () => void
}

interface Sample {
  readonly commitToStartMs: number
  readonly confirmationToStartMs: number
}

/** Enqueues one job after another for a worker process that has nothing else to do. */
async function sample(options: SampleOptions): Promise<readonly Sample[]> {
  const { connectionString, schema, queue, listen, samples, interrupted } = options
  const starts = new HandlerStarts(samples)
  const pool = new WorkerPool({
    processes: 1,
    start: { type: 'start', connectionString, schema, queue, concurrency: 8, listen },
    onProgress: (progress) => starts.add(progress),
  })
  try {
    await Promise.race([pool.start(), interrupted])
    const commits = await enqueueAll(options)
    await Promise.race([starts.complete, pool.failure, interrupted])
    await pool.stop()
    return commits.map(({ sentMs, confirmedMs }, index) => ({
      commitToStartMs: starts.startedMs(index) - sentMs,
      confirmationToStartMs: starts.startedMs(index) - confirmedMs,
    }))
  } finally {
    await pool.kill()
  }
}

interface Commit {
  readonly sentMs: number
  readonly confirmedMs: number
}

async function enqueueAll(options: SampleOptions): Promise<readonly Commit[]> {
  const { connectionString, schema, queue, samples, gapMs, signal, onSample } = options
  const session = createClient({ connectionString })
  await using tenantry = new Tenantry({ connectionString, schema })
  await session.connect()
  try {
    const commits: Commit[] = []
    for (let index = 0; index < samples; index += 1) {
      await delay(gapMs.min + systemRandom.next() * (gapMs.max - gapMs.min), signal)
      signal.throwIfAborted()
      await session.query('begin')
      await tenantry.enqueue(workloadJob, { index, durationMs: 0 }, { tenant: 'tenant', queue, transaction: session })
      // No job can start before its commit is sent, and what the commit takes is in the figure.
      const sentMs = machineClockMs()
      await session.query('commit')
      commits.push({ sentMs, confirmedMs: machineClockMs() })
      onSample()
    }
    return commits
  } finally {
    await endClient(session)
  }
}

function resultOf(wakeUp: LatencyResult['wakeUp'], samples: readonly Sample[]): LatencyResult {
  return {
    wakeUp,
    samples: samples.length,
    commitToStartMs: distribution(samples.map(({ commitToStartMs }) => commitToStartMs)),
    confirmationToStartMs: distribution(samples.map(({ confirmationToStartMs }) => confirmationToStartMs)),
  }
}

function distribution(values: readonly number[]): Distribution {
  const found = distributionOf(values)
  if (!found) throw new RangeError('expected at least one sample')
  return found
}

function targetsOf(results: readonly LatencyResult[]): readonly LatencyTarget[] {
  const listened = results.find(({ wakeUp }) => wakeUp === 'listen')
  if (!listened) return []
  return (['p50', 'p99'] as const).map((percentile) => {
    const ms = listened.confirmationToStartMs[percentile]
    return { measured: 'listen', percentile, ms, mostMs: TARGETS_MS[percentile], met: ms <= TARGETS_MS[percentile] }
  })
}

function slotTarget(slot: SlotResult): LatencyTarget {
  const ms = slot.endToStartMs.p99
  return { measured: slotName(slot), percentile: 'p99', ms, mostMs: SLOT_TARGET_MS, met: ms <= SLOT_TARGET_MS }
}

export function slotName({ limit, wakeUp, processes }: SlotResult): string {
  return `slot of a ${limit}, ${wakeUp}, ${processes} ${processes === 1 ? 'process' : 'processes'}`
}
