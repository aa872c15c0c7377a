import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Ended {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCommand {
  readonly process: ChildProcess
  /** What it has written to stderr so far. */
  readonly stderr: () => string
  readonly ended: Promise<Ended>
}

export interface CommandOptions {
  /** In place of the environment, which names databases that the command must not find by accident. */
  readonly environment?: Readonly<Record<string, string>>
  readonly stdin?: string
}

/** Starts the built command line. It is killed at the end of the test if it still runs then. */
export function startCommand(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const { PATH = '', HOME = '', TMPDIR = '' } = process.env
  const env = { PATH, HOME, ...(TMPDIR && { TMPDIR }), ...options.environment }
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const written = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (written.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text))
  child.stdin.on('error', () => {})
  child.stdin.end(options.stdin ?? '')
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exitCode) => resolve({ exitCode, ...written }))
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return { process: child, stderr: () => written.stderr, ended }
}

export function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  return startCommand(args, options).ended
}
