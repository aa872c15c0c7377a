import { Command } from 'commander'
import { CHANGE_HELP, type ChangeOptions, changeJobs, changeOptions } from '../change-jobs.js'
import type { CommandFactory } from '../edge.js'

export const moveCommand: CommandFactory = (edge) =>
  changeOptions(new Command('move'))
    .description('move every job of a queue that waits to another queue, or those of one tenant or one kind')
    .argument('<to-queue>', 'where they wait from then on')
    .addHelpText(
      'after',
      `
The jobs keep their id, their attempts and their place in the order. Quotas of the other queue do not count.
${CHANGE_HELP}
  $ tenantry move default bulk --tenant acme`,
    )
    .action((queue: string, target: string, options: ChangeOptions) =>
      changeJobs(edge, { queue, options, done: 'moved' }, (tenantry, given) => tenantry.moveJobs(queue, target, given)),
    )
