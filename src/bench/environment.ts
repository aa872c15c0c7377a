import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { systemClock } from '../clock.js'
import type { BenchServer } from './server.js'

/** Where and with what the figures were measured. Without it they mean nothing. */
export interface BenchEnvironment {
  readonly measuredAt: string
  readonly tenantry: string
  readonly node: string
  readonly postgresql: string
  readonly server: 'embedded' | 'given'
  readonly system: string
  readonly cpu: string
  readonly cores: number
  readonly memoryMiB: number
  /** Processes that wanted to run in the minute before, on average: other work makes the figures larger. 0 on Windows. */
  readonly loadBefore: number
  /** Whether the server's CPU time could be seen. */
  readonly serverCpu: boolean
  readonly settings: Readonly<Record<string, string>>
}

export async function environmentOf({ session, embedded, postmasterPid }: BenchServer): Promise<BenchEnvironment> {
  const rows = await session.run('server_settings')
  const { server_version: postgresql = '', ...settings } = Object.fromEntries(
    rows.map((row) => [row['name'] ?? '', row['value'] ?? '']),
  )
  return {
    measuredAt: systemClock.wallClock().toISOString(),
    tenantry: packageVersion(),
    node: process.version,
    postgresql,
    server: embedded ? 'embedded' : 'given',
    system: `${type()} ${release()}`,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    loadBefore: loadavg()[0] ?? 0,
    memoryMiB: Math.round(totalmem() / 1024 ** 2),
    serverCpu: postmasterPid !== undefined,
    settings,
  }
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
