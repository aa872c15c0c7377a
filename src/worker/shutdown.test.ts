import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ShutdownError } from '../errors.js'
import { type ShutdownParts, shutDown, within } from './shutdown.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => {})

/** Runs a shutdown to its end in virtual time and answers with the steps that it took. */
async function run(parts: Partial<ShutdownParts>) {
  const steps: string[] = []
  const startMs = performance.now()
  const note = (step: string) => steps.push(`${step} at ${Math.round(performance.now() - startMs)}`)
  const all: ShutdownParts = {
    shutdownTimeoutMs: 10_000,
    stopClaiming: async () => {},
    idle: async () => {},
    abort: (reason) => note(`abort with ${reason.name}`),
    abandon: () => {
      note('abandon')
      return 2
    },
    drain: async () => {
      note('drain')
      return 0
    },
    close: async () => {
      note('close')
    },
    ...parts,
  }
  const shutdown = shutDown(all)
  await vi.advanceTimersByTimeAsync(120_000)
  expect(vi.getTimerCount()).toBe(0)
  return { report: await shutdown, steps }
}

test('with nothing to do it ends at once', async () => {
  const { report, steps } = await run({})
  expect(steps).toEqual(['drain at 0', 'close at 0'])
  expect(report).toEqual({ abandoned: 0, unsettled: 0 })
})

test('handlers that end within the timeout are waited for and not aborted (B85)', async () => {
  const { steps } = await run({ idle: () => new Promise((resolve) => setTimeout(resolve, 9_000)) })
  expect(steps).toEqual(['drain at 9000', 'close at 9000'])
})

test('handlers that take longer are aborted, and their outcomes are still written (B87)', async () => {
  let abort = () => {}
  const idle = new Promise<void>((resolve) => {
    abort = resolve
  })
  const { report, steps } = await run({
    idle: () => idle,
    abort: (reason) => reason instanceof ShutdownError && abort(),
  })
  expect(steps).toEqual(['drain at 10000', 'close at 10000'])
  expect(report.abandoned).toBe(0)
})

test('handlers that ignore their signal are left behind half a second later (B87)', async () => {
  const { report, steps } = await run({ idle: never })
  expect(steps).toEqual(['abort with ShutdownError at 10000', 'abandon at 10500', 'drain at 10500', 'close at 10500'])
  expect(report.abandoned).toBe(2)
})

test('it ends in bounded time whatever hangs (B86)', async () => {
  const { report, steps } = await run({
    idle: never,
    stopClaiming: never,
    drain: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(3))),
    close: never,
  })
  expect(steps).toEqual(['abort with ShutdownError at 10000', 'abandon at 10500'])
  expect(report).toEqual({ abandoned: 2, unsettled: 3 })
})

test('a claim that hangs does not hold up a worker without jobs for the whole timeout (B86)', async () => {
  const { steps } = await run({ stopClaiming: never })
  expect(steps).toEqual(['drain at 5000', 'close at 5000'])
})

test('within tells the action that its time is over', async () => {
  let told = false
  const ended = within(100, (timeIsOver) => {
    timeIsOver.addEventListener('abort', () => {
      told = true
    })
    return never()
  })
  await vi.advanceTimersByTimeAsync(100)
  expect(await ended).toBe(false)
  expect(told).toBe(true)
})
