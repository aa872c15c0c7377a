import { Command, Option } from 'commander'
import { HISTORY_MODES, type QueueSettings, STRATEGIES } from '../../settings/settings.js'
import { CONNECTION_HELP } from '../connect.js'
import type { CommandFactory, Edge } from '../edge.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { jsonOption, schemaOption } from '../options.js'
import { exactJson, printable } from '../output.js'
import { withTenantry } from '../session.js'

interface Options extends Partial<QueueSettings> {
  readonly schema?: string
  readonly json?: true
}

export const queuesCommand: CommandFactory = (edge) =>
  new Command('queues')
    .description('change the settings of queues')
    .addCommand(setCommand(edge))
    .addHelpText('after', '\nExample:\n  $ tenantry queues set default --strategy fair')

const setCommand: CommandFactory = (edge) =>
  new Command('set')
    .description('set how a queue picks its jobs and what it keeps of them; the rest stays as it is')
    .argument('<name>', 'name of the queue')
    .addOption(
      new Option('--strategy <strategy>', 'whose job is next; a queue that was never set is fair').choices(STRATEGIES),
    )
    .addOption(
      new Option(
        '--history <mode>',
        'what is kept of finished jobs; a queue that was never set keeps them whole',
      ).choices(HISTORY_MODES),
    )
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', `\nActs at the next claim, on waiting jobs too.\n\n${CONNECTION_HELP}\n\n${EXAMPLES}`)
    .action((name: string, options: Options) => set(edge, name, options))

async function set(edge: Edge, name: string, options: Options): Promise<void> {
  const { strategy, history } = options
  if (!strategy && !history) {
    throw new CommandError(EXIT.usage, 'nothing to set; give --strategy, --history or both')
  }
  const wanted = { ...(strategy && { strategy }), ...(history && { history }) }
  const settings = await withTenantry(edge, options, (tenantry) => tenantry.configureQueue(name, wanted))
  if (options.json) edge.stdout.write(exactJson({ name, ...settings }))
  else edge.stdout.write(`${printable(name)}: strategy ${settings.strategy}, history ${settings.history}\n`)
}

const EXAMPLES = `Examples:
  $ tenantry queues set default --strategy fifo
  $ tenantry queues set webhooks --history keep-without-payload`
