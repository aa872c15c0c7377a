import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

/** A database of its own for what uses the default schema. Dropped at the end of the test. */
export async function createDatabase(): Promise<{ readonly connectionString: string; readonly pool: pg.Pool }> {
  const server = inject('databaseUrl')
  const name = `docs_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  await administer(server, `create database ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
    await administer(server, `drop database ${name} with (force)`)
  })
  return { connectionString: url.href, pool }
}

async function administer(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

export interface Program {
  readonly process: ChildProcess
  readonly output: () => string
  readonly ended: Promise<number | null>
}

/** Runs a module in a process of its own, which is killed at the end of the test if it still runs then. */
export function run(module: string, args: readonly string[], environment: Readonly<Record<string, string>>): Program {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [module, ...args], { env: { PATH, HOME, ...environment } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { process: child, output: () => output, ended }
}
