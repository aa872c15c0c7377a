import { expect, test } from 'vitest'
import { groupsCommand, keysCommand, kindsCommand } from './commands/limits.js'
import { queuesCommand } from './commands/queues.js'
import { tenantsCommand } from './commands/tenants.js'
import type { Edge } from './edge.js'
import { programOf } from './program.js'
import { NONE, settingOptions, spelled } from './settings-options.js'

/** What the program says on stderr about a command line that it does not even try. */
async function complaintAbout(argv: readonly string[]): Promise<string> {
  const written: string[] = []
  const edge: Edge = {
    environment: {},
    stdin: (async function* () {})(),
    stdout: { write: (text) => written.push(`stdout: ${text}`) },
    stderr: { write: (text) => written.push(text) },
    signal: new AbortController().signal,
  }
  const commands = [queuesCommand, tenantsCommand, groupsCommand, kindsCommand, keysCommand]
  await expect(programOf(edge, commands).parseAsync(argv, { from: 'user' })).rejects.toThrow()
  return written.join('').replaceAll(/\s+/g, ' ')
}

test.each([
  [['tenants', 'set', 'a', '--weight', '0'], 'expected weight to be a number from 0.001 to 1000, got 0'],
  [['tenants', 'set', 'a', '--weight=-1'], 'expected weight to be a number from 0.001 to 1000, got -1'],
  [['tenants', 'set', 'a', '--weight', 'NaN'], 'expected weight to be a number from 0.001 to 1000, got "NaN"'],
  [['tenants', 'set', 'a', '--weight', 'Infinity'], 'got "Infinity"'],
  [['tenants', 'set', 'a', '--weight', '3x'], 'expected weight to be a number from 0.001 to 1000, got "3x"'],
  [['groups', 'set', 'a', '--weight', '1e9'], 'expected weight to be a number from 0.001 to 1000, got 1000000000'],
  [['kinds', 'set', 'a', '--concurrency', '1.5'], 'expected concurrency to be an integer from 0 to 1000000, got 1.5'],
  [['queues', 'set', 'a', '--tenant-quota', '1e10'], 'expected tenantQuota to be an integer from 0 to 1000000000'],
  [['keys', 'set', 'a', '--rate', '1000001/s'], 'expected rate to be from 0.000001 to 1000000 a second, got 1000001'],
  [['keys', 'set', 'a', '--rate', '10'], 'Expected a rate such as 10/s'],
  [['keys', 'set', 'a', '--rate', '10/s burst 0'], 'expected rate.burst to be an integer from 1 to 1000000, got 0'],
  [['queues', 'set', 'a', '--objective', '95/2s'], 'objective.share to be a number from 0.5 to 0.9999, got 95'],
  [['queues', 'set', 'a', '--objective', '95%'], 'Expected an objective such as 95%/2s'],
  [['queues', 'set', 'a', '--strategy', 'lifo'], "expected strategy to be one of 'fair', 'fifo', 'round-robin'"],
  [['queues', 'set', 'a', '--concurency', '3'], "unknown option '--concurency'"],
  [['tenants', 'set', 'a', '--group', ''], 'expected group to be a string of 1 to 255 bytes'],
] as const)('%j is refused with the sentence of the client (B16)', async (argv, complaint) => {
  expect(await complaintAbout(argv)).toContain(complaint)
})

test.each([
  ['--rate', '10/s', { limit: 10, perMs: 1_000 }],
  ['--rate', '2.5/m', { limit: 2.5, perMs: 60_000 }],
  ['--rate', '5/10s burst 20', { limit: 5, perMs: 10_000, burst: 20 }],
  ['--rate', '1/500ms', { limit: 1, perMs: 500 }],
  ['--objective', '95%/2s', { waitMs: 2_000, share: 0.95 }],
  ['--objective', '0.9/1.5m', { waitMs: 90_000, share: 0.9 }],
  ['--objective', '99.99%/1d', { waitMs: 86_400_000, share: 0.9999 }],
  ['--concurrency', '0', 0],
  ['--concurrency', '1e6', 1_000_000],
  ['--weight', '.5', 0.5],
  ['--group', 'none', NONE],
  ['--rate', 'none', NONE],
])('%s %s is read', (flag, text, value) => {
  const option = settingOptions('tenant').find(({ long }) => long === flag)
  expect(option?.parseArg?.(text, undefined)).toEqual(value)
})

test.each([
  ['rate', { limit: 10, perMs: 1_000, burst: 10 }, '10/s burst 10'],
  ['tenantRate', { limit: 1, perMs: 10_000 }, '1/10s'],
  ['objective', { waitMs: 2_000, share: 0.999 }, '99.9%/2s'],
  ['concurrency', null, 'none'],
  ['pausedAt', null, 'no'],
  ['pausedAt', new Date(0), 'since 1970-01-01T00:00:00.000Z'],
  ['weight', 0.5, '0.5'],
])('%s %j is written as it would be given', (name, value, text) => {
  expect(spelled(name, value)).toBe(text)
})
