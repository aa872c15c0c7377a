import { delay } from '../clock.js'
import { systemRandom } from '../random.js'
import { percentile } from '../workload/statistics.js'
import { WorkloadError } from '../workload/workload.js'
import { drain, Ledger, warmUp } from './drain.js'
import type { Scenario } from './scenarios.js'
import { serverCpuUs } from './server-cpu.js'
import type { BenchSession } from './session.js'
import type { Claimant, Subject } from './subject.js'

/** Calls after which every session has compiled and planned all there is. PostgreSQL decides about its plan at the sixth. */
const WARM_UP_ROUNDS = 6

/** How long sessions may take to leave once they were told to. */
const LEAVE_DEADLINE_MS = 10_000

const LOOK_AGAIN_MS = 20

/** What one run has shown. Null is what cannot be seen on this server. */
export interface RunFigures {
  readonly jobs: number
  /** CPU time of all processes of the server, claims and settles together. */
  readonly serverUsPerJob: number | null
  /**
   * CPU time of the VACUUM that the run has made necessary, which autovacuum would otherwise do at some other time. Null
   * where it would clean up after many more jobs at once than those of a run.
   */
  readonly vacuumUsPerJob: number | null
  readonly walBytesPerJob: number
  readonly buffersPerJob: number | null
  readonly jobsPerSecond: number
  readonly claimMs: { readonly p50: number; readonly p95: number; readonly p99: number }
  /** Claims that brought nothing although jobs were left. */
  readonly emptyClaims: number
  /** Claims that had to be sent again because a lock was not granted in time. */
  readonly lateClaims: number
}

export interface MeasureOptions {
  readonly session: BenchSession
  /** Undefined when the server's processes cannot be seen. */
  readonly postmasterPid: number | undefined
  readonly canFlushStatistics: boolean
  /** False when this role may not. */
  readonly checkpoint: boolean
  readonly signal: AbortSignal
}

/** Loads a subject, claims and settles once through, and answers with what it cost. */
export async function measureRun(subject: Subject, scenario: Scenario, options: MeasureOptions): Promise<RunFigures> {
  const { session, signal, checkpoint, canFlushStatistics } = options
  await subject.load(scenario.backlog + warmUpJobs(scenario))
  if (checkpoint) await session.run('checkpoint')
  signal.throwIfAborted()
  const name = `tenantry-bench-${systemRandom.uuid().slice(0, 8)}`
  const claimants = Array.from({ length: scenario.connections }, () => subject.connect(name))
  const ledger = new Ledger()
  const look = () => lookAt(options)
  try {
    await warmUp({ claimants, ledger, signal }, WARM_UP_ROUNDS)
    if (canFlushStatistics) await Promise.all(claimants.map((claimant) => claimant.flushStatistics()))
    const waiting = (await subject.count()).waiting
    const before = await look()
    const record = await drain({ claimants, ledger, signal, jobs: scenario.jobs })
    const after = await look()
    // Their counts of buffers are complete when they are gone.
    await leave(claimants, { name, session })
    const buffers = canFlushStatistics ? (await buffersOf(session)) - before.buffers : null
    await checkCount(subject, waiting - record.jobs)
    const { jobs } = record
    return {
      jobs,
      serverUsPerJob: difference(before.cpuUs, after.cpuUs, jobs),
      vacuumUsPerJob: scenario.fresh ? await vacuumCost(subject, options, jobs) : null,
      walBytesPerJob: (after.walBytes - before.walBytes) / jobs,
      buffersPerJob: buffers === null ? null : buffers / jobs,
      jobsPerSecond: (jobs / record.durationMs) * 1_000,
      claimMs: latencies(record.claimsMs),
      emptyClaims: record.emptyClaims,
      lateClaims: record.lateClaims,
    }
  } finally {
    await Promise.all(claimants.map((claimant) => claimant.close()))
  }
}

function warmUpJobs({ connections, batch }: Scenario): number {
  return connections * batch * WARM_UP_ROUNDS
}

interface Look {
  readonly cpuUs: number | undefined
  readonly walBytes: number
  readonly buffers: number
}

async function lookAt({ session, postmasterPid }: MeasureOptions): Promise<Look> {
  const buffers = await buffersOf(session)
  const walBytes = await session.number('wal_position', 'bytes')
  return { cpuUs: postmasterPid === undefined ? undefined : serverCpuUs(postmasterPid), walBytes, buffers }
}

function buffersOf(session: BenchSession): Promise<number> {
  return session.number('buffers', 'buffers')
}

async function leave(
  claimants: readonly Claimant[],
  { name, session }: { readonly name: string; readonly session: BenchSession },
): Promise<void> {
  await Promise.all(claimants.map((claimant) => claimant.close()))
  for (let waitedMs = 0; waitedMs < LEAVE_DEADLINE_MS; waitedMs += LOOK_AGAIN_MS) {
    if ((await session.number('backends_left', 'sessions', { values: [name] })) === 0) return
    await delay(LOOK_AGAIN_MS)
  }
  throw new WorkloadError(`sessions did not end within ${LEAVE_DEADLINE_MS} ms; is there a pooler in between?`)
}

/** Nothing may be lost, and nothing may be left behind half done. */
async function checkCount(subject: Subject, expected: number): Promise<void> {
  const { waiting, running } = await subject.count()
  if (waiting === expected && running === 0) return
  throw new WorkloadError(
    `expected ${expected} jobs to wait and none to run after a ${subject.strategy} run, got ${waiting} and ${running}; ` +
      'please report this as a bug',
  )
}

async function vacuumCost(subject: Subject, { postmasterPid }: MeasureOptions, jobs: number): Promise<number | null> {
  const cpuUs = () => (postmasterPid === undefined ? undefined : serverCpuUs(postmasterPid))
  const before = cpuUs()
  await subject.vacuum()
  return difference(before, cpuUs(), jobs)
}

function difference(before: number | undefined, after: number | undefined, jobs: number): number | null {
  return before === undefined || after === undefined ? null : (after - before) / jobs
}

function latencies(claimsMs: readonly number[]): RunFigures['claimMs'] {
  const ascending = Float64Array.from(claimsMs).sort()
  return { p50: percentile(ascending, 50), p95: percentile(ascending, 95), p99: percentile(ascending, 99) }
}
