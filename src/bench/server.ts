import { EmbeddedServer } from '../embedded/server.js'
import { systemRandom } from '../random.js'
import { postmasterOf, serverCpuUs } from './server-cpu.js'
import { BenchSession } from './session.js'

export interface BenchServer {
  readonly connectionString: string
  readonly session: BenchSession
  readonly embedded: boolean
  /** Undefined when its processes are not to be seen from here. */
  readonly postmasterPid: number | undefined
  /** A name that nobody uses. The schema is dropped at the end. */
  newSchema(): string
}

export interface BenchServerOptions {
  /** An own server. Without one, a server is started in a temporary directory and removed afterwards. */
  readonly connectionString: string | undefined
  readonly signal: AbortSignal
  /** Told what is going on, for people. */
  readonly say: (what: string) => void
}

/**
 * Enough shared buffers for every scenario; no checkpoint and no autovacuum in the middle of a run, since it would meet some
 * runs and not others. Both are done by hand before each run. Commits wait for the disk, as they do in production.
 */
const SETTINGS = {
  shared_buffers: '512MB',
  max_connections: '200',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
}

/** Lends a server to measure, and leaves nothing behind. */
export async function withBenchServer<T>(
  options: BenchServerOptions,
  use: (server: BenchServer) => Promise<T>,
): Promise<T> {
  const { connectionString, signal, say } = options
  if (connectionString !== undefined) return withGivenServer({ connectionString, say }, use)
  signal.throwIfAborted()
  say('starting PostgreSQL in a temporary directory')
  // Not cut short by the signal: only a server that has started can be removed without a trace.
  await using server = await EmbeddedServer.start({ settings: SETTINGS })
  signal.throwIfAborted()
  await using session = await BenchSession.open(server.connectionString)
  return await use({
    connectionString: server.connectionString,
    session,
    embedded: true,
    postmasterPid: visible(server.pid, say),
    newSchema: schemaNames(),
  })
}

async function withGivenServer<T>(
  { connectionString, say }: { readonly connectionString: string; readonly say: (what: string) => void },
  use: (server: BenchServer) => Promise<T>,
): Promise<T> {
  await using session = await BenchSession.open(connectionString)
  const [backend] = await session.run('backend')
  const postmasterPid = visible(postmasterOf({ pid: Number(backend?.['pid']), port: backend?.['port'] ?? null }), say)
  const nextName = schemaNames()
  const schemas: string[] = []
  const newSchema = () => {
    const name = nextName()
    schemas.push(name)
    return name
  }
  try {
    return await use({ connectionString, session, embedded: false, postmasterPid, newSchema })
  } finally {
    for (const schema of schemas) {
      await session.drop(schema).catch((error: unknown) => {
        // What went wrong before is the news; a schema that stays behind is only a remark.
        say(`could not drop the schema ${schema}, please drop it by hand: ${String(error)}`)
      })
    }
  }
}

/** The postmaster, if its CPU time can be seen from here. */
function visible(pid: number | undefined, say: BenchServerOptions['say']): number | undefined {
  if (pid !== undefined && serverCpuUs(pid) !== undefined) return pid
  say('the processes of the server cannot be seen from here, so its CPU time is not measured')
  return undefined
}

function schemaNames(): () => string {
  const prefix = `tenantry_bench_${systemRandom.uuid().slice(0, 8)}`
  let count = 0
  return () => {
    count += 1
    return `${prefix}_${count}`
  }
}
