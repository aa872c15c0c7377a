import { Command } from 'commander'
import { CHANGE_HELP, type ChangeOptions, changeJobs, changeOptions, confirmed } from '../change-jobs.js'
import type { CommandFactory } from '../edge.js'

interface Options extends ChangeOptions {
  readonly history?: true
}

export const purgeCommand: CommandFactory = (edge) =>
  confirmed(changeOptions(new Command('purge')))
    .description('delete every job of a queue that waits, or of one tenant or one kind of it, without a trace')
    .option('--history', 'delete those that have ended too')
    .addHelpText(
      'after',
      `${CHANGE_HELP}
  $ tenantry purge mail --tenant acme --history --yes`,
    )
    .action((queue: string, options: Options) =>
      changeJobs(edge, { queue, options, done: 'deleted', asks: asksOf(options) }, (tenantry, given) =>
        tenantry.purge(queue, { ...given, history: options.history === true }),
      ),
    )

function asksOf({ history }: Options): string {
  return `deletes every job that waits${history ? ' or has ended' : ''}, without a trace,`
}
