import { Command, Option } from 'commander'
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
  readonly configure: (tenantry: Tenantry, named: Named, change: SettingsChange<Settings>) => Promise<object>
  /** A line for the help, without the name of the program. */
  readonly example: string
}

interface Options extends Readonly<Record<string, unknown>> {
  readonly queue?: string
  readonly schema?: string
  readonly json?: true
}

/** The commands `set` and `show` of a target. A tenant, group, kind or key is one of a queue, which is an option. */
export function settingsCommands<Settings>(edge: Edge, target: Target<Settings>): readonly Command[] {
  const { of, example } = target
  const command = (name: string, description: string) => {
    const made = new Command(name).description(description).argument(`<${of}>`, `name of the ${of}`)
    if (of !== 'queue') made.addOption(new Option('--queue <queue>', `queue of the ${of}`).default('default'))
    return made
  }
  const set = command('set', `change a ${of}; what is not named stays as it is, and none restores the default`)
  for (const option of settingOptions(of)) set.addOption(option)
  set
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `\nActs at the next claim, on waiting jobs too.\n\n${CONNECTION_HELP}\n\nExample:\n  $ tenantry ${example}`,
    )
    .action((name: string, _: Options, self: Command) => {
      const options = optionsOf(self)
      const change = changeOf(of, options)
      if (Object.keys(change).length === 0)
        throw new CommandError(EXIT.usage, `nothing to set; see tenantry ${of}s set --help`)
      return apply(edge, self, { target, name, options, change })
    })
  const show = command('show', `print what is set of a ${of}`)
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText('after', `\n${CONNECTION_HELP}`)
    .action((name: string, _: Options, self: Command) =>
      apply(edge, self, { target, name, options: optionsOf(self), change: {} }),
    )
  return [set, show]
}

/** `tenants` has some of the options of `tenants set`, and commander takes them for its own. */
function optionsOf(command: Command): Options {
  return command.optsWithGlobals<Options>()
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
    const title = each.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/ at$/, '')
    edge.stdout.write(`${bold(title.padEnd(20))}${printable(spelled(each, now[each]))}\n`)
  }
}
