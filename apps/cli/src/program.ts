import { Command, type CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { addAggregateCommands } from './aggregates/commands.ts';
import type { Bind } from './bind.ts';
import { addBackupCommands } from './commands/backup.ts';
import { addDaemonCommands } from './commands/daemons.ts';
import { addDomainCommands } from './commands/domain.ts';
import { addFileCommands } from './commands/file.ts';
import { addImageCommands } from './commands/image.ts';
import { addIndexerCommands } from './commands/indexer.ts';
import { addInstanceCommands } from './commands/instance.ts';
import { addJoiningCommands } from './commands/joining.ts';
import { addKeyCommands } from './commands/key.ts';
import { addLogsCommand } from './commands/logs.ts';
import { addMessageCommands } from './commands/message.ts';
import { addNetworkCommands } from './commands/network.ts';
import { addNodeCommands } from './commands/node.ts';
import { addProgramCommands } from './commands/program.ts';
import { addSchedulerCommands } from './commands/scheduler.ts';
import { addScoreCommands } from './commands/score.ts';
import { addVrfCommands } from './commands/vrf.ts';
import { addWebhookCommands } from './commands/webhook.ts';
import { addCompletionCommands } from './completion/commands.ts';
import { DEFAULT_CORE_URL, DEFAULT_KEY_NAME } from './config.ts';
import type { CommandHost } from './host.ts';
import { addNetworksCommands } from './networks/commands.ts';
import { type GlobalOptions, parseHttpUrl } from './options.ts';
import { addPostCommands } from './posts/commands.ts';

/** The tree of commands. Nothing that is slow to load is loaded before the command that needs it runs. */
export function createProgram(host: CommandHost, setExitCode: (exitCode: number) => void): Command {
  const program = new Command('skerry')
    .description('A decentralised cloud that people run themselves')
    .version(packageJson.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option(
      '--core <url>',
      `the core node (SKERRY_CORE_URL; the current network's, or ${DEFAULT_CORE_URL})`,
      parseHttpUrl,
    )
    .option('--network <name>', 'a network that "skerry network" lists (SKERRY_NETWORK; the current one)')
    .option('--gateway <url>', "the gateway's API (SKERRY_GATEWAY_URL; as the network says)", parseHttpUrl)
    .option('--key <name>', `the key to sign with (SKERRY_KEY; ${DEFAULT_KEY_NAME})`)
    .option('--json', 'print JSON; errors too, on standard error')
    .configureHelp({ showGlobalOptions: true, sortOptions: false })
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      // The help of a group of which no command was named: the error says which there are.
      writeErr: (text) => (program.opts<GlobalOptions>().json ? true : host.stderr.write(text)),
      // Told once, by whoever catches it.
      outputError: () => {},
    })
    .addHelpText(
      'after',
      `
Examples:
  $ skerry up                       a whole network on this computer
  $ skerry key new                  a key to sign with
  $ skerry instance create --name web --allow 22,80 --wait

Exit codes: 0 ok, 1 failed, 2 wrong use or input, 3 not found, 4 refused, 5 unavailable or timed out,
            6 a program ran and failed, 130 ended by Ctrl-C

Files: data, cache and keys are in your XDG directories, or all below SKERRY_HOME if it is set.`,
    );
  addCommands(program, createBind(host, setExitCode));
  throwInsteadOfExit(program);
  return program;
}

/** In the order of the help. */
function addCommands(program: Command, bind: Bind): void {
  addNetworkCommands(program, bind);
  addLogsCommand(program, bind);
  addNetworksCommands(program, bind);
  addKeyCommands(program, bind);
  addInstanceCommands(program, bind);
  addImageCommands(program, bind);
  addProgramCommands(program, bind);
  addMessageCommands(program, bind);
  addPostCommands(program, bind);
  addAggregateCommands(program, bind);
  addFileCommands(program, bind);
  addWebhookCommands(program, bind);
  addDomainCommands(program, bind);
  addVrfCommands(program, bind);
  addIndexerCommands(program, bind);
  addNodeCommands(program, bind);
  addScoreCommands(program, bind);
  addJoiningCommands(program, bind);
  addDaemonCommands(program, bind);
  addSchedulerCommands(program, bind);
  addBackupCommands(program, bind);
  addCompletionCommands(program, bind);
}

function createBind(host: CommandHost, setExitCode: (exitCode: number) => void): Bind {
  return (body) =>
    async (...all) => {
      const command = all.at(-1) as Command;
      const options = command.optsWithGlobals<GlobalOptions>();
      const { createContext } = await import('./context.ts');
      const { createOutput } = await import('./output/output.ts');
      const { environment, stdin, stdout, stderr } = host;
      const colours = stdout.isTTY === true && stdout.hasColors();
      const output = createOutput(stdout, stderr, { json: options.json === true, colours });
      const context = await createContext({ environment, stdin, output }, options);
      try {
        const exitCode = await body(context, command.opts() as never, command.processedArgs as never);
        if (typeof exitCode === 'number') setExitCode(exitCode);
      } catch (error) {
        const { blameVariable } = await import('./networks/choose.ts');
        throw blameVariable(error, context.network);
      }
    };
}

/** Wrong use becomes an error that knows which command's help to name. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride((error: CommanderError) => {
    if (error.code === 'commander.missingMandatoryOptionValue') blameTypo(command);
    if (error.code === 'commander.help' && error.exitCode !== 0) nameCommands(command, error);
    if (command.parent !== null) nameOthers(command, error);
    if (error.code === 'commander.excessArguments') nameNaming(command, error);
    throw Object.assign(error, { commandPath: pathOf(command) });
  });
  for (const child of command.commands) throwInsteadOfExit(child);
}

/** An option that is missing was often misspelt: then that is what is said. Commander looks for what is missing first. */
function blameTypo(command: Command): void {
  const end = command.args.indexOf('--');
  const words = end === -1 ? command.args : command.args.slice(0, end);
  const unknown = words.find((word) => word.startsWith('-') && word !== '-');
  // Its types leave out what says which option was probably meant.
  if (unknown !== undefined)
    (command as unknown as { unknownOption(flag: string): void }).unknownOption(unknown);
}

/** A group of which no command was named, or one that it does not have. */
function nameCommands(command: Command, error: CommanderError): void {
  const [word, wanted] = command.args;
  if (word === 'help' && wanted !== undefined) {
    command.args = [wanted];
    (command as unknown as { unknownCommand(): void }).unknownCommand();
  }
  error.message = `which command of ${pathOf(command)}? There are ${namesIn(command)}`;
}

/** What its help lists. */
function namesIn(command: Command): string {
  const shown = new Set(command.createHelp().visibleCommands(command));
  return command.commands
    .filter((child) => shown.has(child))
    .map((child) => child.name())
    .join(', ');
}

/** A word behind a group that is no command of it, or behind a daemon (to Commander, an argument too many): what is similar is seldom what was meant. */
function nameOthers(command: Command, error: CommanderError): void {
  const takesNone = command.commands.length > 0 && command.registeredArguments.length === 0;
  if (error.code === 'commander.excessArguments' && takesNone)
    error.message = `unknown command '${command.args[0]}'`;
  else if (error.code !== 'commander.unknownCommand') return;
  error.message += `: ${pathOf(command)} has ${namesIn(command)}`;
  // What is done with a part of something may be a command of the whole: a snapshot is restored by "instance restore".
  const above = command.parent?.commands.find((one) => one !== command && one.name() === command.args[0]);
  if (above) error.message += `; there is "${pathOf(above)}"`;
}

/** A word too many is often the name that an option gives. */
function nameNaming(command: Command, error: CommanderError): void {
  const isNameable = command.options.some(({ long }) => long === '--name');
  if (isNameable && command.opts<{ name?: string }>().name === undefined)
    error.message += ' A name is given with --name.';
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
