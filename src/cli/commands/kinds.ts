import { Command } from 'commander'
import type { KindSettings } from '../../settings/settings.js'
import type { CommandFactory } from '../edge.js'
import { settingsCommands } from '../settings-commands.js'

export const kindsCommand: CommandFactory = (edge) => {
  const command = new Command('kinds').description('limit the kinds of a queue, and print their limits')
  for (const each of settingsCommands<KindSettings>(edge, {
    of: 'kind',
    configure: (tenantry, { queue, name }, change) => tenantry.configureKind(queue, name, change),
    example: 'kinds set render-video --concurrency 2 --queue media',
  })) {
    command.addCommand(each)
  }
  return command
}
