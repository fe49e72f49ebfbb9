import type { Argument, Command, Option } from 'commander';

/** What can stand at a place of the command line: read off the program, so that no command can be left out. */

/** Where the values of an argument or option come from; `words`: only the person knows them. */
export type Values = 'keys' | 'networks' | 'instances' | 'files' | 'words';

export interface Described {
  readonly name: string;
  readonly description: string;
}

export interface CompletedOption extends Described {
  /** With its hyphens: `--name`, and `-n` where there is one. */
  readonly flags: readonly string[];
  /** Undefined for one that takes no value. */
  readonly values: Values | undefined;
}

export interface Place {
  /** `skerry instance create` */
  readonly path: string;
  readonly commands: readonly Described[];
  readonly options: readonly CompletedOption[];
  /** What its arguments are; undefined where it takes none. */
  readonly values: Values | undefined;
}

const VALUES_OF_OPTION: Readonly<Record<string, Values>> = { key: 'keys', network: 'networks' };
const FILES = /^(?:<|\[)?(?:file|path|dir)\b/;

function valuesOfOption({ flags, long }: Option): Values | undefined {
  const [, value] = /[ =]([<[].*)$/.exec(flags) ?? [];
  if (value === undefined) return undefined;
  return VALUES_OF_OPTION[long?.slice(2) ?? ''] ?? (FILES.test(value) ? 'files' : 'words');
}

function valuesOfArgument(command: Command, argument: Argument | undefined): Values | undefined {
  if (argument === undefined) return undefined;
  const name = argument.name();
  if (name === 'instance') return 'instances';
  if (name === 'name' && command.parent?.name() === 'network' && command.name() !== 'add') return 'networks';
  return FILES.test(name) ? 'files' : 'words';
}

const asOption = (option: Option): CompletedOption => ({
  name: option.long ?? option.short ?? '',
  flags: [option.short, option.long].filter((flag) => flag !== undefined),
  description: option.description,
  values: valuesOfOption(option),
});

/** Every command and group of commands, the program itself first. */
export function listPlaces(command: Command, parentPath = ''): Place[] {
  const path = parentPath === '' ? command.name() : `${parentPath} ${command.name()}`;
  const help = command.createHelp();
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const place: Place = {
    path,
    commands: children.map((child) => ({
      name: child.name(),
      description: child.summary() || child.description(),
    })),
    options: help.visibleOptions(command).map(asOption),
    values: valuesOfArgument(command, command.registeredArguments[0]),
  };
  return [place, ...children.flatMap((child) => listPlaces(child, path))];
}
