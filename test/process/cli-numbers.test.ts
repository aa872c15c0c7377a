import { expect, test } from 'vitest'
import { defineJob } from '../../src/job/define-job.js'
import type { TenantNumbers } from '../../src/numbers/numbers.js'
import { runCommand, startCommand } from '../support/command-line.js'
import { createTenantry } from '../support/tenantry.js'
import { until } from '../support/until.js'

const work = defineJob({ kind: 'work' })

async function setUp() {
  const { schema, connectionString, tenantry } = await createTenantry()
  const environment = { DATABASE_URL: connectionString, TENANTRY_SCHEMA: schema }
  const enqueue = (tenant: string, count: number) =>
    tenantry.enqueueMany(Array.from({ length: count }, () => ({ definition: work, payload: null, tenant })))
  return { tenantry, environment, enqueue, run: (args: readonly string[]) => runCommand(args, { environment }) }
}

test('tenants prints a line for each, in the order and number that are asked for', async () => {
  const { run, enqueue, tenantry } = await setUp()
  await enqueue('small', 1)
  await enqueue('large\u001b[31m', 12)
  await enqueue('middle', 3)
  await tenantry.pause('default', { tenant: 'middle' })
  const { exitCode, stdout, stderr } = await run(['tenants', '--limit', '2'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '1 more\n' })
  const [head, ...lines] = stdout.trimEnd().split('\n')
  expect(head).toMatch(/^tenant +available +blocked +scheduled +running/)
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(/^large\\u001b\[31m +12 +0 +0 +0 /)
  expect(lines[1]).toMatch(/^middle +3 .* paused$/)
})

test('tenants prints all there is as JSON', async () => {
  const { run, enqueue } = await setUp()
  await enqueue('a', 2)
  const { exitCode, stdout } = await run(['tenants', '--json', '--sort', 'name'])
  expect(exitCode).toBe(0)
  const [tenant] = JSON.parse(stdout) as TenantNumbers[]
  expect(tenant).toMatchObject({ tenant: 'a', available: 2, capped: false, starved: false, noisy: false, started: 0 })
})

test('tenants says of an empty queue that there is nothing', async () => {
  const { run } = await setUp()
  const { exitCode, stdout, stderr } = await run(['tenants', '--queue', 'nobody'])
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' })
  expect(stderr).toContain('no tenant of this queue has jobs')
})

test.each([
  [['tenants', '--sort', 'size'], "argument 'size' is invalid. Allowed choices are backlog"],
  [['tenants', '--minutes', '61'], "argument '61' is invalid. Expected a whole number from 0 to 60."],
  [['tenants', '--limit', '0'], "argument '0' is invalid. Expected a whole number from 1 to 1000000."],
  [['top', '--interval', '5'], "argument '5' is invalid. Expected a duration from 1ms to 1h, such as 30s or 5m."],
])('%j is refused', async (args, complaint) => {
  const { exitCode, stderr } = await runCommand(args)
  expect(exitCode).toBe(2)
  expect(stderr).toContain(complaint)
})

test('top prints one plain look with --once, and look after look without until it is interrupted', async () => {
  const { run, enqueue, environment } = await setUp()
  await enqueue('a', 2)
  const once = await run(['top', '--once'])
  expect({ exitCode: once.exitCode, stderr: once.stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(once.stdout).toContain('1 of 1 tenants wait')
  expect(once.stdout).toMatch(/^a +2 /m)
  expect(once.stdout).not.toContain('\u001b')

  const { process, ended } = startCommand(['top', '--interval', '10ms'], { environment })
  let looks = 0
  process.stdout?.on('data', (text: string) => {
    looks += text.split('tenants wait').length - 1
  })
  await until(() => looks >= 2, { until: 'two looks are printed' })
  process.kill('SIGINT')
  expect((await ended).exitCode).toBe(130)
})

test('top says of a queue that nobody knows that there is none', async () => {
  const { run } = await setUp()
  const { exitCode, stdout } = await run(['top', '--once', '--queue', 'nobody'])
  expect(exitCode).toBe(0)
  expect(stdout).toContain('there is no such queue')
})
