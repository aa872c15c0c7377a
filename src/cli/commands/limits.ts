import type { GroupSettings, KeySettings, KindSettings } from '../../settings/settings.js'
import type { CommandFactory } from '../edge.js'
import { settingsGroup } from '../settings-commands.js'

export const groupsCommand: CommandFactory = (edge) =>
  settingsGroup<GroupSettings>(edge, {
    of: 'group',
    description: 'set what a group of tenants gets, and print it',
    configure: (tenantry, { queue, name }, change) => tenantry.configureGroup(queue, name, change),
    example: 'groups set acme-corp --weight 4 --queue mail',
  })

export const kindsCommand: CommandFactory = (edge) =>
  settingsGroup<KindSettings>(edge, {
    of: 'kind',
    description: 'limit the kinds of a queue, and print their limits',
    configure: (tenantry, { queue, name }, change) => tenantry.configureKind(queue, name, change),
    example: 'kinds set render-video --concurrency 2 --queue media',
  })

export const keysCommand: CommandFactory = (edge) =>
  settingsGroup<KeySettings>(edge, {
    of: 'key',
    description: 'limit the keys of a queue, and print their limits',
    configure: (tenantry, { queue, name }, change) => tenantry.configureKey(queue, name, change),
    example: 'keys set api.example.com --concurrency 4 --rate 10/s',
  })
