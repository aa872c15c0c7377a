import { readdirSync, readFileSync } from 'node:fs'

/** Unit of the times in /proc/PID/stat: a hundredth of a second on every Linux that Node runs on. */
const TICK_US = 10_000

/** A process that ends between two looks is counted nowhere; then we look again. */
const LOOKS_MAX = 20

/**
 * CPU time of a PostgreSQL server so far, in microseconds: the postmaster, its living children and those that have ended,
 * which is everything that works for the server. Undefined when they cannot be seen. Linux only.
 */
export function serverCpuUs(postmasterPid: number, proc = '/proc'): number | undefined {
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const before = processOf(postmasterPid, proc)
    if (!before) return undefined
    const living = cpuUsOfChildren(postmasterPid, proc)
    const after = processOf(postmasterPid, proc)
    if (after?.endedChildrenUs === before.endedChildrenUs) return after.ownUs + after.endedChildrenUs + living
  }
  return undefined
}

/** The parent of a backend, if that process is one of ours to see: `port` is its client's, as the backend's title has it. */
export function postmasterOf(
  backend: { readonly pid: number; readonly port: string | null },
  proc = '/proc',
): number | undefined {
  const title = read(`${proc}/${backend.pid}/cmdline`)
  // A server on another machine, or in a container, may have a process of the same number.
  if (!title?.startsWith('postgres:') || !title.includes(backend.port === null ? '[local]' : `(${backend.port})`)) {
    return undefined
  }
  return processOf(backend.pid, proc)?.parent
}

interface ProcessCpu {
  readonly parent: number
  readonly ownUs: number
  readonly endedChildrenUs: number
}

function cpuUsOfChildren(parent: number, proc: string): number {
  let total = 0
  for (const name of readdirSync(proc)) {
    if (!/^\d+$/.test(name)) continue
    const found = processOf(Number(name), proc)
    if (found?.parent === parent) total += found.ownUs
  }
  return total
}

function processOf(pid: number, proc: string): ProcessCpu | undefined {
  const stat = read(`${proc}/${pid}/stat`)
  // The name of the program stands in parentheses and may hold anything; the rest is numbers.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (!fields) return undefined
  const field = (index: number) => Number(fields[index])
  // To the nanosecond where the kernel tells; otherwise in ticks, of which each process loses up to two.
  const nanoseconds = read(`${proc}/${pid}/schedstat`)?.split(' ')[0]
  const ownUs = nanoseconds === undefined ? (field(11) + field(12)) * TICK_US : Number(nanoseconds) / 1_000
  return { parent: field(1), ownUs, endedChildrenUs: (field(13) + field(14)) * TICK_US }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // The process is gone, or there is no such file on this system.
  }
}
