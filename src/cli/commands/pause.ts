import { Command } from 'commander'
import type { JobFilter, Scope } from '../../job/filter.js'
import { CONNECTION_HELP } from '../connect.js'
import type { CommandFactory, Edge } from '../edge.js'
import { schemaOption } from '../options.js'
import { printable } from '../output.js'
import { described, filterOf, filterOptions } from '../queue-filter.js'
import { withTenantry } from '../session.js'

interface Options extends JobFilter {
  readonly schema?: string
}

export const pauseCommand: CommandFactory = (edge) =>
  filterOptions(new Command('pause'))
    .description('let nothing more start of a queue, or of one tenant or one kind of it; what runs goes on')
    .addOption(schemaOption())
    .addHelpText('after', helpOf('pause', 'It stays paused, whatever is restarted, until it is resumed.'))
    .action((queue: string, options: Options) => set(edge, 'pause', { queue, ...options }))

export const resumeCommand: CommandFactory = (edge) =>
  filterOptions(new Command('resume'))
    .description('end a pause of a queue, or of one tenant or one kind of it')
    .addOption(schemaOption())
    .addHelpText('after', helpOf('resume', 'A queue, a tenant and a kind are paused and resumed separately.'))
    .action((queue: string, options: Options) => set(edge, 'resume', { queue, ...options }))

async function set(
  edge: Edge,
  action: 'pause' | 'resume',
  options: Options & { readonly queue: string },
): Promise<void> {
  const { queue, schema } = options
  const scope = filterOf(options)
  // A tenant and a kind at once are for the client to refuse.
  await withTenantry(edge, schema === undefined ? {} : { schema }, (tenantry) =>
    tenantry[action](queue, scope as Scope),
  )
  const state = action === 'pause' ? 'is paused' : 'is not paused'
  edge.stdout.write(`${printable(described('Queue', queue, scope))} ${state}.\n`)
}

const helpOf = (action: string, remark: string) =>
  `\n${remark}\n\n${CONNECTION_HELP}\n\nExamples:\n  $ tenantry ${action} mail\n  $ tenantry ${action} mail --tenant acme`
