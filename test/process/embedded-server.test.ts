import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { locateBinaries } from '../../src/embedded/binaries.js'
import { EmbeddedServer } from '../../src/embedded/server.js'
import { until } from '../support/until.js'

async function ask(server: { readonly connectionString: string }, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server.connectionString })
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query(text)
  await client.end()
  return rows
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a server is started, restarted on the same port with the same data, and removed', async () => {
  const server = await EmbeddedServer.start({ durable: false, settings: { work_mem: '5MB' } })
  onTestFinished(() => server.stop())
  await ask(server, 'create table kept as select 1 as id')
  const { port, pid } = server
  await server.restart('immediate')
  expect(server.port).toBe(port)
  expect(server.pid).not.toBe(pid)
  expect(await ask(server, 'select id from kept')).toEqual([{ id: 1 }])
  expect(await ask(server, "select current_setting('work_mem') as memory, current_setting('fsync') as fsync")).toEqual([
    { memory: '5MB', fsync: 'off' },
  ])
  const last = server.pid
  await server.stop()
  await server.stop()
  expect(isAlive(last)).toBe(false)
  expect(existsSync(dirname(server.dataDir))).toBe(false)
})

test('a server is durable unless told otherwise', async () => {
  await using server = await EmbeddedServer.start()
  expect(
    await ask(server, "select current_setting('fsync') as fsync, current_setting('listen_addresses') as at"),
  ).toEqual([{ fsync: 'on', at: '127.0.0.1' }])
})

test('a setting that PostgreSQL refuses is reported with the words of PostgreSQL', async () => {
  const start = EmbeddedServer.start({ settings: { work_mem: 'plenty' } })
  await expect(start).rejects.toThrow(
    /did not start; its log ends with:\n.*invalid value for parameter "work_mem": "plenty"/s,
  )
})

test('a folder without a server is an error that says so', async () => {
  await expect(EmbeddedServer.start({ packageFolder: tmpdir() })).rejects.toThrow('expected a PostgreSQL server at ')
})

test('a package without its symbolic links is used all the same, as after an install without scripts', async () => {
  const folder = await copyOfPackage()
  await using server = await EmbeddedServer.start({ packageFolder: folder, durable: false })
  expect(await ask(server, 'select 1 as one')).toEqual([{ one: 1 }])
})

test.runIf(process.getuid?.() === 0)(
  'as root, a package below a directory that only root may enter is copied and runs as somebody else',
  async () => {
    const folder = await copyOfPackage()
    await chmod(folder, 0o700)
    await using server = await EmbeddedServer.start({ packageFolder: folder, durable: false })
    expect(await ask(server, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(existsSync(join(dirname(server.dataDir), 'native', 'bin', 'postgres'))).toBe(true)
  },
)

/** Made of the files alone, as a tarball of npm's is. */
async function copyOfPackage(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenantry-package-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await chmod(folder, 0o755)
  const { TENANTRY_TEST_POSTGRES_PACKAGE: packageFolder } = process.env
  const native = locateBinaries(packageFolder)
  const links = new Set(await linkTargets(native))
  await cp(native, join(folder, 'native'), { recursive: true, filter: (path) => !links.has(path) })
  return folder
}

async function linkTargets(native: string): Promise<string[]> {
  const { default: links } = await import(join(native, 'pg-symlinks.json'), { with: { type: 'json' } })
  return (links as { target: string }[]).map(({ target }) => join(native, '..', target))
}

const PROGRAM = `
  import { EmbeddedServer } from ${JSON.stringify(new URL('../../dist/embedded/server.js', import.meta.url).href)}
  const server = await EmbeddedServer.start({ durable: false })
  console.log(JSON.stringify({ pid: server.pid, dataDir: server.dataDir }))
  process.on('message', () => process.exit())
`

/** Another process with a server, which it never stops. */
async function startElsewhere(): Promise<{ child: ChildProcess; pid: number; dataDir: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const [line] = (await once(lines, 'line')) as [string]
  return { child, ...(JSON.parse(line) as { pid: number; dataDir: string }) }
}

test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  'a server goes away with its process, here by %s',
  async (signal) => {
    const { child, pid, dataDir } = await startElsewhere()
    child.kill(signal)
    await until(() => !isAlive(pid), { until: 'the server has ended' })
    await until(() => !existsSync(dirname(dataDir)), { until: 'its directory is removed' })
  },
)

test('a server goes away with a process that exits without stopping it, and its directory before that', async () => {
  const { child, pid, dataDir } = await startElsewhere()
  child.send('exit')
  await once(child, 'exit')
  expect(existsSync(dirname(dataDir))).toBe(false)
  await until(() => !isAlive(pid), { until: 'the server has ended' })
})
