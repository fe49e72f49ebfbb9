import type { createProgram } from '../../apps/cli/src/program.ts';

/** As the command itself has them: another version of the library may lie beside these tools. */
export type Command = ReturnType<typeof createProgram>;
type Option = Command['options'][number];

/** What a manual says of a command, in whatever form it is printed. Pure. */

/** A setting of a daemon, as its page lists it. */
export interface ManualSetting {
  readonly variable: string;
  readonly describe: string;
  /** Its default as text; empty where there is none. */
  readonly fallback: string;
}

export interface Entry {
  readonly term: string;
  readonly text: string;
}

export interface Described {
  /** `skerry`, `instance`, `create` */
  readonly path: readonly string[];
  readonly description: string;
  readonly usage: string;
  readonly children: readonly Command[];
  readonly args: readonly Entry[];
  readonly options: readonly Entry[];
  /** Options that every command takes stand with the program. */
  readonly globalOptions: readonly Entry[];
  /** The lines of "Example:" in its help. */
  readonly examples: readonly string[];
}

export const pathOf = (command: Command): string[] => [
  ...(command.parent ? pathOf(command.parent) : []),
  command.name(),
];

const defaultOf = ({ defaultValue, defaultValueDescription }: Option) => {
  const shown = defaultValueDescription ?? (typeof defaultValue === 'object' ? undefined : defaultValue);
  return shown === undefined || typeof shown === 'boolean' ? '' : ` (default: ${String(shown)})`;
};

const entriesOf = (options: readonly Option[]): Entry[] =>
  options.map((option) => ({ term: option.flags, text: `${option.description}${defaultOf(option)}` }));

function examplesOf(command: Command): string[] {
  const parts: string[] = [];
  const output = command.configureOutput();
  command.configureOutput({ ...output, writeOut: (part) => void parts.push(part) });
  command.outputHelp();
  command.configureOutput(output);
  return [...parts.join('').matchAll(/^ {2}\$ (.*)$/gm)].map((match) => match[1]!);
}

function globalOptionsOf(command: Command): readonly Option[] {
  let top = command;
  while (top.parent) top = top.parent;
  return top === command ? [] : top.options;
}

export function describeCommand(command: Command): Described {
  const help = command.createHelp();
  return {
    path: pathOf(command),
    description: command.description(),
    usage: help.commandUsage(command),
    children: help.visibleCommands(command).filter((child) => child.name() !== 'help'),
    args: help.visibleArguments(command).map((one) => ({ term: one.name(), text: one.description })),
    options: entriesOf(help.visibleOptions(command)),
    globalOptions: entriesOf(globalOptionsOf(command)),
    examples: examplesOf(command),
  };
}
