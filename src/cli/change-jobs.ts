import type { Command } from 'commander'
import type { JobFilter } from '../job/filter.js'
import type { MoveOptions } from '../operations/options.js'
import type { Tenantry } from '../tenantry.js'
import { CONNECTION_HELP } from './connect.js'
import type { Edge } from './edge.js'
import { CommandError, EXIT } from './exit-codes.js'
import { jsonOption, schemaOption } from './options.js'
import { counted, exactJson, printable } from './output.js'
import { described, filterOf, filterOptions } from './queue-filter.js'
import { withTenantry } from './session.js'
import { StatusLine } from './status-line.js'

export interface ChangeOptions extends JobFilter {
  readonly yes?: true
  readonly schema?: string
  readonly json?: true
}

/** For commands that change many jobs. */
export function changeOptions(command: Command): Command {
  return filterOptions(command).addOption(schemaOption()).addOption(jsonOption())
}

/** For those that cannot be undone. */
export function confirmed(command: Command): Command {
  return command.option('--yes', 'do it; without this nothing is changed')
}

export interface Change {
  readonly queue: string
  readonly options: ChangeOptions
  /** What has become of the jobs, as in "cancelled". */
  readonly done: string
  /** What --yes is asked for; undefined when it need not be. */
  readonly asks?: string
}

export async function changeJobs(
  edge: Edge,
  { queue, options, done, asks }: Change,
  run: (tenantry: Tenantry, given: MoveOptions) => Promise<number>,
): Promise<void> {
  const filter = filterOf(options)
  if (asks !== undefined && !options.yes) {
    const what = printable(described('queue', queue, filter))
    throw new CommandError(EXIT.usage, `this ${asks} in ${what}; add --yes to do it`)
  }
  const status = new StatusLine(edge.stderr)
  const watch = { signal: edge.signal, onProgress: (jobs: number) => status.show(`${counted(jobs, 'job')} ${done}`) }
  const jobs = await withTenantry(edge, options, (tenantry) => run(tenantry, { ...filter, ...watch })).finally(() =>
    status.clear(),
  )
  edge.stdout.write(options.json ? exactJson({ jobs }) : `${counted(jobs, 'job')} ${done}.\n`)
}

export const CHANGE_HELP = `
Jobs that run go on, and so do those that are enqueued from now on. A thousand are changed at a time: when it is
interrupted, what was done stays done. Workers need not be stopped.

${CONNECTION_HELP}

Examples:`
