import { Command } from 'commander'
import { CHANGE_HELP, type ChangeOptions, changeJobs, changeOptions, confirmed } from '../change-jobs.js'
import type { CommandFactory } from '../edge.js'

interface Options extends ChangeOptions {
  readonly reason?: string
}

export const cancelAllCommand: CommandFactory = (edge) =>
  confirmed(changeOptions(new Command('cancel-all')))
    .description('cancel every job of a queue that waits, or of one tenant or one kind of it')
    .option('--reason <text>', 'kept with the jobs in the history')
    .addHelpText(
      'after',
      `${CHANGE_HELP}
  $ tenantry cancel-all mail --tenant acme --reason 'left us' --yes
  $ tenantry jobs cancel 42                    a single job`,
    )
    .action((queue: string, options: Options) =>
      changeJobs(edge, { queue, options, done: 'cancelled', asks: 'cancels every job that waits' }, (tenantry, given) =>
        tenantry.cancelAll(queue, { ...given, ...(options.reason !== undefined && { reason: options.reason }) }),
      ),
    )
