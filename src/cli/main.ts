#!/usr/bin/env node
import { benchCommand } from './commands/bench.js'
import { cancelAllCommand } from './commands/cancel-all.js'
import { demoCommand } from './commands/demo.js'
import { doctorCommand } from './commands/doctor.js'
import { drainCommand } from './commands/drain.js'
import { enqueueCommand } from './commands/enqueue.js'
import { jobsCommand } from './commands/jobs.js'
import { groupsCommand, keysCommand, kindsCommand } from './commands/limits.js'
import { migrateCommand } from './commands/migrate.js'
import { moveCommand } from './commands/move.js'
import { pauseCommand, resumeCommand } from './commands/pause.js'
import { purgeCommand } from './commands/purge.js'
import { queuesCommand } from './commands/queues.js'
import { replayCommand } from './commands/replay.js'
import { simulateCommand } from './commands/simulate.js'
import { tenantsCommand } from './commands/tenants.js'
import { topCommand } from './commands/top.js'
import { whyCommand } from './commands/why.js'
import type { CommandFactory, Edge } from './edge.js'
import { EXIT, type ExitCode, failureOf, Interruption } from './exit-codes.js'
import { printable } from './output.js'
import { commanderExitCode, programOf } from './program.js'

/** One file a command. The order is that of --help. */
const COMMANDS: readonly CommandFactory[] = [
  demoCommand,
  migrateCommand,
  enqueueCommand,
  jobsCommand,
  queuesCommand,
  tenantsCommand,
  groupsCommand,
  kindsCommand,
  keysCommand,
  pauseCommand,
  resumeCommand,
  drainCommand,
  cancelAllCommand,
  purgeCommand,
  moveCommand,
  topCommand,
  whyCommand,
  doctorCommand,
  simulateCommand,
  replayCommand,
  benchCommand,
]

async function run(edge: Edge, argv: readonly string[]): Promise<ExitCode> {
  try {
    await programOf(edge, COMMANDS).parseAsync(argv, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    return commanderExitCode(error) ?? explain(error, edge)
  }
}

/** One paragraph on stderr: what happened and what to do. The stack is for those who ask for it. */
function explain(error: unknown, { environment, stderr, signal }: Edge): ExitCode {
  // Whatever failed while the command was being stopped failed because of that.
  if (signal.aborted) return failureOf(signal.reason).exitCode
  const { exitCode, message, unexpected } = failureOf(error)
  const { DEBUG } = environment
  const advice = unexpected && !DEBUG ? '; set DEBUG=1 to see where' : ''
  stderr.write(`tenantry: ${message.split('\n').map(printable).join('\n')}${advice}\n`)
  if (DEBUG && error instanceof Error) stderr.write(`${error.stack}\n`)
  return exitCode
}

/** The first signal asks the command to clean up, the second ends the process. */
function interruptions(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      const interruption = new Interruption(name)
      if (controller.signal.aborted) process.exit(interruption.exitCode)
      controller.abort(interruption)
    })
  }
  return controller.signal
}

/** Key by key instead of line by line. Ctrl-C is then a key as well, and no signal. */
function keys(pressed: (key: string) => void): () => void {
  const { stdin } = process
  const listener = (chunk: Buffer) => {
    for (const key of chunk.toString()) pressed(key)
  }
  stdin.setRawMode(true).resume().on('data', listener)
  return () => {
    stdin.off('data', listener).setRawMode(false).pause()
  }
}

// `tenantry … | head` closes our stdout early, which is its good right.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failure),
)

const edge: Edge = {
  environment: process.env,
  stdin: process.stdin,
  keys: process.stdin.isTTY ? keys : undefined,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interruptions(),
}
const exitCode = await run(edge, process.argv.slice(2))
// A command that was cut short may have left a query behind that nobody waits for.
if (edge.signal.aborted) process.exit(exitCode)
process.exitCode = exitCode
