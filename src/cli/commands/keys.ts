import { Command } from 'commander'
import type { KeySettings } from '../../settings/settings.js'
import type { CommandFactory } from '../edge.js'
import { settingsCommands } from '../settings-commands.js'

export const keysCommand: CommandFactory = (edge) => {
  const command = new Command('keys').description('limit the keys of a queue, and print their limits')
  for (const each of settingsCommands<KeySettings>(edge, {
    of: 'key',
    configure: (tenantry, { queue, name }, change) => tenantry.configureKey(queue, name, change),
    example: 'keys set api.example.com --concurrency 4 --rate 10/s',
  })) {
    command.addCommand(each)
  }
  return command
}
