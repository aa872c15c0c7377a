import { Command } from 'commander'
import type { GroupSettings } from '../../settings/settings.js'
import type { CommandFactory } from '../edge.js'
import { settingsCommands } from '../settings-commands.js'

export const groupsCommand: CommandFactory = (edge) => {
  const command = new Command('groups').description('change the settings of groups of tenants, and print them')
  for (const each of settingsCommands<GroupSettings>(edge, {
    of: 'group',
    configure: (tenantry, { queue, name }, change) => tenantry.configureGroup(queue, name, change),
    example: 'groups set acme-corp --weight 4 --queue mail',
  })) {
    command.addCommand(each)
  }
  return command
}
