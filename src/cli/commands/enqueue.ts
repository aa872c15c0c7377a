import { Command, InvalidArgumentError } from 'commander'
import { defineJob } from '../../job/define-job.js'
import type { EnqueueOptions } from '../../job/new-job.js'
import { ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX } from '../../limits.js'
import { CONNECTION_HELP } from '../connect.js'
import type { CommandFactory, Edge } from '../edge.js'
import { readJson } from '../json-input.js'
import { duration, jsonOption, schemaOption, wholeNumber } from '../options.js'
import { exactJson } from '../output.js'
import { withTenantry } from '../session.js'

interface Options extends Omit<EnqueueOptions, 'delayMs'> {
  /** Milliseconds. */
  readonly delay?: number
  readonly payload: string
  readonly schema?: string
  readonly json?: true
}

export const enqueueCommand: CommandFactory = (edge) =>
  new Command('enqueue')
    .description('enqueue one job and print its id')
    .argument('<kind>', 'kind of the job, as in defineJob')
    .requiredOption('--tenant <tenant>', 'on whose behalf the job runs')
    .option('--payload <json>', 'JSON, or @file, or - for stdin', '{}')
    .option('--queue <queue>', 'queue of the job (default: default)')
    .option('--key <key>', 'what the job must not use together with other jobs that have the key')
    .option('--priority <n>', `-${PRIORITY_MAX} to ${PRIORITY_MAX}; higher runs earlier within the tenant`, priority)
    .option('--delay <duration>', 'not before this much later, as in 90s or 2h', duration(0, DELAY_MS_MAX))
    .option('--max-attempts <n>', 'starts before the job is discarded', wholeNumber(1, ATTEMPTS_MAX))
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', HELP)
    .action((kind: string, options: Options) => enqueue(edge, kind, options))

async function enqueue(edge: Edge, kind: string, { payload, schema, json, delay, ...options }: Options): Promise<void> {
  const value = await readJson(edge, '--payload', payload)
  const id = await withTenantry(edge, schema === undefined ? {} : { schema }, (tenantry) =>
    tenantry.enqueue(defineJob({ kind }), value, { ...options, ...(delay !== undefined && { delayMs: delay }) }),
  )
  edge.stdout.write(json ? exactJson({ id }) : `${id}\n`)
}

function priority(text: string): number {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (Math.abs(value) <= PRIORITY_MAX) return value
  throw new InvalidArgumentError(`Expected a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}.`)
}

const HELP = `
The payload is not checked against the schema of the definition, which is in your code: the worker does that.

${CONNECTION_HELP}

Examples:
  $ tenantry enqueue send-invoice --tenant acme --payload '{"invoiceId":"42"}'
  $ tenantry enqueue import --tenant acme --payload @rows.json --queue heavy
  $ tenantry enqueue sync --tenant acme --key account-7
  $ jq .invoice order.json | tenantry enqueue send-invoice --tenant acme --payload -`
