import { Command, Option } from 'commander'
import { spaced } from '../casing.js'
import type { SettingsChange } from '../settings/settings.js'
import type { Tenantry } from '../tenantry.js'
import { CONNECTION_HELP } from './connect.js'
import { type Edge, stdoutColors } from './edge.js'
import { CommandError, EXIT } from './exit-codes.js'
import { jsonOption, schemaOption } from './options.js'
import { exactJson, printable } from './output.js'
import { withTenantry } from './session.js'
import { NONE, namesOf, type SettingsOf, settingOptions, spelled } from './settings-options.js'

/** One tenant of a queue, say, and how it is changed. */
interface Named {
  readonly queue: string
  readonly name: string
}

interface Target<Settings> {
  readonly of: SettingsOf
  /** What the group of commands is for, in its help. */
  readonly description: string
  readonly configure: (tenantry: Tenantry, named: Named, change: SettingsChange<Settings>) => Promise<object>
  /** A line for the help, without the name of the program. */
  readonly example: string
}

interface Options extends Readonly<Record<string, unknown>> {
  readonly queue?: string
  readonly schema?: string
  readonly json?: true
}

/** `queues`, `tenants` and so on, with `set` and `show`; what is given as `list` is what they do by themselves. */
export function settingsGroup<Settings>(edge: Edge, target: Target<Settings>, list?: Command): Command {
  const command = new Command(`${target.of}s`).description(target.description)
  if (list) command.addCommand(list, { isDefault: true })
  for (const each of settingsCommands(edge, target)) command.addCommand(each)
  return command.addHelpText('after', `\nExample:\n  $ tenantry ${target.example}`)
}

/** A tenant, group, kind or key is one of a queue, which is an option. */
function settingsCommands<Settings>(edge: Edge, target: Target<Settings>): readonly Command[] {
  const { of, example } = target
  const command = (name: string, description: string) => {
    const made = new Command(name).description(description).argument(`<${of}>`, `name of the ${of}`)
    if (of !== 'queue') made.addOption(new Option('--queue <queue>', `queue of the ${of}`).default('default'))
    return made
  }
  const set = command('set', `change a ${of}; what is not named stays as it is, and the word none restores the default`)
  for (const option of settingOptions(of)) set.addOption(option)
  set
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `\nActs at the next claim, on waiting jobs too.\n\n${CONNECTION_HELP}\n\nExample:\n  $ tenantry ${example}`,
    )
    .action((name: string, options: Options, self: Command) => {
      const change = changeOf(of, options)
      if (Object.keys(change).length === 0)
        throw new CommandError(EXIT.usage, `nothing to set; see tenantry ${of}s set --help`)
      return apply(edge, self, { target, name, options, change })
    })
  const show = command('show', `print what is set of a ${of}`)
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', `\n${CONNECTION_HELP}`)
    .action((name: string, options: Options, self: Command) => apply(edge, self, { target, name, options, change: {} }))
  return [set, show]
}

function changeOf<Settings>(of: SettingsOf, options: Options): SettingsChange<Settings> {
  const given = namesOf(of).filter((name) => options[name] !== undefined)
  return Object.fromEntries(
    given.map((name) => [name, options[name] === NONE ? null : options[name]]),
  ) as SettingsChange<Settings>
}

interface Application<Settings> {
  readonly target: Target<Settings>
  readonly name: string
  readonly options: Options
  readonly change: SettingsChange<Settings>
}

async function apply<Settings>(edge: Edge, command: Command, application: Application<Settings>): Promise<void> {
  const { target, name, options, change } = application
  const { of, configure } = target
  const { queue = name } = options
  const now: Readonly<Record<string, unknown>> = {
    ...(await withTenantry(edge, options, (tenantry) => configure(tenantry, { queue, name }, change))),
  }
  const names = [...namesOf(of), ...('pausedAt' in now ? ['pausedAt'] : [])]
  if (options.json) {
    const settings = Object.fromEntries(names.map((each) => [each, now[each]]))
    edge.stdout.write(exactJson({ queue, ...(of !== 'queue' && { [of]: name }), ...settings }))
    return
  }
  const { bold } = stdoutColors(edge, command)
  for (const each of names) {
    const title = spaced(each).replace(/ at$/, '')
    edge.stdout.write(`${bold(title.padEnd(20))}${printable(spelled(each, now[each]))}\n`)
  }
}
