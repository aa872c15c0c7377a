import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postmasterOf, serverCpuUs } from './server-cpu.js'

interface FakeProcess {
  readonly pid: number
  readonly parent: number
  readonly name?: string
  /** User and system time, its own and that of its children which have ended, in ticks. */
  readonly ticks: readonly [number, number, number, number]
  readonly nanoseconds?: number
  readonly title?: string
}

/** A folder with what the kernel shows of processes, since real ones cannot be made to use an exact amount of CPU. */
function proc(...processes: readonly FakeProcess[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenantry-proc-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'sys'))
  for (const { pid, parent, name = 'postgres', ticks, nanoseconds, title } of processes) {
    mkdirSync(join(folder, String(pid)))
    writeFileSync(
      join(folder, String(pid), 'stat'),
      `${pid} (${name}) S ${parent} 1 1 0 -1 0 0 0 0 0 ${ticks.join(' ')} 20 0\n`,
    )
    if (nanoseconds !== undefined) writeFileSync(join(folder, String(pid), 'schedstat'), `${nanoseconds} 5 7\n`)
    if (title !== undefined) writeFileSync(join(folder, String(pid), 'cmdline'), title)
  }
  return folder
}

describe('serverCpuUs', () => {
  it('adds the postmaster, its children and those of them that have ended, and nobody else', () => {
    const folder = proc(
      { pid: 10, parent: 1, ticks: [1, 2, 30, 40] },
      { pid: 11, parent: 10, ticks: [100, 0, 0, 0] },
      { pid: 12, parent: 10, ticks: [0, 200, 0, 0] },
      { pid: 13, parent: 1, ticks: [5_000, 0, 0, 0] },
      { pid: 14, parent: 11, ticks: [7_000, 0, 0, 0] },
    )
    expect(serverCpuUs(10, folder)).toBe((1 + 2 + 30 + 40 + 100 + 200) * 10_000)
  })

  it('takes the exact time of a process where the kernel tells it', () => {
    const folder = proc(
      { pid: 10, parent: 1, ticks: [0, 0, 5, 0], nanoseconds: 1_500 },
      { pid: 11, parent: 10, ticks: [1, 0, 0, 0], nanoseconds: 2_000 },
    )
    expect(serverCpuUs(10, folder)).toBe(50_000 + 1.5 + 2)
  })

  it('reads a program whose name looks like numbers and parentheses', () => {
    const folder = proc({ pid: 10, parent: 1, name: 'a) S 9 (b', ticks: [1, 0, 0, 0] })
    expect(serverCpuUs(10, folder)).toBe(10_000)
  })

  it('says nothing of a server that is not to be seen', () => {
    expect(serverCpuUs(10, proc())).toBeUndefined()
    expect(serverCpuUs(10, '/nonexistent')).toBeUndefined()
  })
})

describe('postmasterOf', () => {
  const backend = { pid: 11, parent: 10, ticks: [0, 0, 0, 0] } as const

  it('is the parent of the backend that serves our own port', () => {
    const folder = proc({ ...backend, title: 'postgres: postgres shop 127.0.0.1(40112) idle' })
    expect(postmasterOf({ pid: 11, port: '40112' }, folder)).toBe(10)
  })

  it('is the parent of a backend that serves a local socket', () => {
    expect(postmasterOf({ pid: 11, port: null }, proc({ ...backend, title: 'postgres: me shop [local] idle' }))).toBe(
      10,
    )
  })

  it.each([
    ['that is another program', 'node server.js (40112)'],
    ['of another session', 'postgres: postgres shop 127.0.0.1(40113) idle'],
  ])('is unknown for a process of the same number %s', (_, title) => {
    expect(postmasterOf({ pid: 11, port: '40112' }, proc({ ...backend, title }))).toBeUndefined()
  })
})
