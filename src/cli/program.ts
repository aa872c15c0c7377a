import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { CommandFactory, Edge } from './edge.js'
import { EXIT, type ExitCode } from './exit-codes.js'

/** The program with its commands; parsing rejects instead of ending the process. */
export function programOf(edge: Edge, factories: readonly CommandFactory[]): Command {
  const program = new Command('tenantry')
    .description('A multi-tenant fair job queue on PostgreSQL.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .option('--no-color', 'print without colours, as NO_COLOR=1 does')
    .addHelpText('after', HELP)
  for (const factory of factories) program.addCommand(factory(edge))
  configure(program, edge)
  return program
}

/** How commander's own endings map to exit codes; undefined when the error is not one of them. */
export function commanderExitCode(error: unknown): ExitCode | undefined {
  if (!(error instanceof CommanderError)) return undefined
  // Commander ends with 0 after help and version that were asked for, and with 1 after everything else.
  return error.exitCode === 0 ? EXIT.ok : EXIT.usage
}

function configure(command: Command, edge: Edge): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => edge.stdout.write(text), writeErr: (text) => edge.stderr.write(text) })
    .showHelpAfterError(`Run \`${fullName(command)} --help\` for the options.`)
    .helpOption('-h, --help', 'print this help')
  if (command.commands.length > 0) command.helpCommand('help [command]', 'print the help of a command')
  for (const child of command.commands) configure(child, edge)
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name()
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}

const HELP = `
Examples:
  $ tenantry demo                     see the difference between FIFO and fair, without a database of your own
  $ tenantry migrate                  create or upgrade the tables
  $ tenantry enqueue KIND --tenant T  enqueue a job; jobs show ID and jobs cancel ID look after it
  $ tenantry top                      who waits, who runs, and who gets more than its share
  $ tenantry why ID                   the one rule that keeps a job from running, and what would change it
  $ tenantry tenants set T --weight 4 --concurrency 10
                                      what a tenant gets; queues, groups, kinds and keys have settings too
  $ tenantry pause QUEUE --tenant T   nothing more of it starts until resume
  $ tenantry doctor                   what is wrong with the queues and the database
  $ tenantry replay log.swf.gz        replay a recorded workload through FIFO and fair

Exit codes: 0 success, 1 failure, 2 usage, 69 database unreachable, 77 permission denied, 78 configuration,
130 and 143 stopped by SIGINT and SIGTERM. Data goes to stdout, everything else to stderr. DEBUG=1 adds stack traces.`
