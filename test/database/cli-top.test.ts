import { expect, inject, test } from 'vitest'
import { topCommand } from '../../src/cli/commands/top.js'
import type { Edge } from '../../src/cli/edge.js'
import { defineJob } from '../../src/job/define-job.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const ESCAPE = '\u001b['

/** A terminal with so many rows, and somebody who sits at it. */
async function terminal(rows: number) {
  const { schema, tenantry } = await createTenantry()
  const work = defineJob({ kind: 'work' })
  await tenantry.enqueueMany(
    Array.from({ length: 30 }, (_, number) => ({ definition: work, payload: null, tenant: `tenant ${number}` })),
  )
  const written: string[] = []
  const typed = new Set<(key: string) => void>()
  const interruption = new AbortController()
  const edge: Edge = {
    environment: { DATABASE_URL: inject('databaseUrl'), TENANTRY_SCHEMA: schema },
    stdin: (async function* () {})(),
    keys: (pressed) => {
      typed.add(pressed)
      return () => typed.delete(pressed)
    },
    stdout: { write: (text) => written.push(text), isTTY: true, columns: 120, rows },
    stderr: { write: () => true },
    signal: interruption.signal,
  }
  const ended = topCommand(edge).parseAsync(['--interval', '10ms'], { from: 'user' })
  const type = (key: string) => {
    for (const pressed of typed) pressed(key)
  }
  return { written, typed, type, ended, interruption }
}

test.each(['q', '\u0003'])('top draws in place until %j is typed, and leaves the terminal as it was', async (key) => {
  const { written, typed, type, ended } = await terminal(15)
  await until(() => written.filter((text) => text.includes('tenant 0')).length >= 3, {
    until: 'it has been drawn three times',
  })
  type('x')
  type(key)
  await ended
  expect(typed.size).toBe(0)
  expect(written[0]).toBe(`${ESCAPE}?1049h${ESCAPE}?25l`)
  expect(written.at(-1)).toBe(`${ESCAPE}?25h${ESCAPE}?1049l`)
  const frame = written.find((text) => text.includes('tenant 0')) ?? ''
  expect(frame.split('\n').length - 1).toBeLessThanOrEqual(14)
  expect(frame).toContain('q quits')
  expect(frame).toContain('30 of 30 tenants wait')
})

test('top ends when it is interrupted, and leaves the terminal as it was', async () => {
  const { written, typed, ended, interruption } = await terminal(15)
  await until(() => written.some((text) => text.includes('tenant 0')), { until: 'it has been drawn' })
  interruption.abort(new Error('stopped by SIGTERM'))
  await expect(ended).rejects.toThrow('stopped by SIGTERM')
  expect(typed.size).toBe(0)
  expect(written.at(-1)).toBe(`${ESCAPE}?25h${ESCAPE}?1049l`)
})
