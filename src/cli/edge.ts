import type { Command } from 'commander'
import type { Environment } from './connect.js'
import { type Colors, colorsFor, type Sink } from './output.js'

/** What a command may touch of the world outside: handed in, so that nothing below the edge reaches for `process`. */
export interface Edge {
  readonly environment: Environment
  readonly stdin: AsyncIterable<Uint8Array | string>
  /** Calls `pressed` with what is typed, key by key, until the answer is called. Undefined unless somebody sits at a terminal. */
  readonly keys?: ((pressed: (key: string) => void) => () => void) | undefined
  /** For data only. */
  readonly stdout: Sink
  /** For everything else: progress, remarks, errors. */
  readonly stderr: Sink
  /** Aborts on SIGINT and SIGTERM, with an `Interruption` as its reason. The command cleans up and throws the reason. */
  readonly signal: AbortSignal
}

/** A command of the program, in a file of its own. Give it to the list in main.ts and it is there. */
export type CommandFactory = (edge: Edge) => Command

/** For what goes to stdout. `--no-color` is an option of the whole program and is read from wherever it stood. */
export function stdoutColors(edge: Edge, command: Command): Colors {
  return colorsFor(edge.stdout, edge.environment, wantsColor(command))
}

export function stderrColors(edge: Edge, command: Command): Colors {
  return colorsFor(edge.stderr, edge.environment, wantsColor(command))
}

function wantsColor(command: Command): boolean {
  return command.optsWithGlobals<{ color?: boolean }>().color !== false
}

/** Waits for `work`, but no longer than until the signal aborts: for commands that leave nothing behind to clean up. */
export async function interruptible<T>(edge: Edge, work: Promise<T>): Promise<T> {
  const { signal } = edge
  let abort = () => {}
  const interrupted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    signal.throwIfAborted()
    return await Promise.race([work, interrupted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
