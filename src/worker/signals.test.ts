import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Signals } from './signals.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

class Host extends EventEmitter {
  readonly exits: number[] = []
  exit(code: number): void {
    this.exits.push(code)
  }
}

test.each(['SIGTERM', 'SIGINT'])('the first %s is announced and does not exit', async (signal) => {
  const host = new Host()
  const signals = new Signals(host)
  host.emit(signal)
  await signals.first
  expect(host.exits).toEqual([])
})

test('a second signal exits at once with 128 and its number, whichever it is', () => {
  const host = new Host()
  new Signals(host)
  host.emit('SIGTERM')
  host.emit('SIGINT')
  host.emit('SIGTERM')
  expect(host.exits).toEqual([130, 143])
})

test('once disposed it listens no longer', () => {
  const host = new Host()
  const signals = new Signals(host)
  signals.dispose()
  expect(host.eventNames()).toEqual([])
})

test('a process that does not end by itself is ended shortly after a stop that left handlers behind', async () => {
  const host = new Host()
  new Signals(host).exitUnlessEnded()
  await vi.advanceTimersByTimeAsync(499)
  expect(host.exits).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(host.exits).toEqual([1])
})
