import type { createProgram } from '../../apps/cli/src/program.ts';

/** As the command itself has them: another version of the library may lie beside these tools. */
type Command = ReturnType<typeof createProgram>;
type Option = Command['options'][number];

/** Manual pages (man(7)), made from the commands and from the settings of the daemons. Pure. */

/** A setting of a daemon, as its page lists it. */
export interface ManualSetting {
  readonly variable: string;
  readonly describe: string;
  /** Its default as text; empty where there is none. */
  readonly fallback: string;
}

export interface ManualPage {
  /** `skerry-instance-create.1` */
  readonly file: string;
  readonly text: string;
}

/** Text that roff takes as it is: no escapes, no hyphen that becomes another sign, no request at the start of a line. */
const inRoff = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1')
    .replaceAll(
      /[^ -~\n]/gu,
      (sign) => `\\[u${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    );

/** The argument of a request. */
const quoted = (text: string) => `"${inRoff(text).replaceAll('"', '\\(dq')}"`;
const bold = (text: string) => `\\fB${inRoff(text)}\\fP`;
const section = (title: string, lines: readonly string[]) =>
  lines.length === 0 ? [] : [`.SH ${quoted(title)}`, ...lines];
const item = (term: string, text: string) => ['.TP', term, inRoff(text)];

const pathOf = (command: Command): string[] => [
  ...(command.parent ? pathOf(command.parent) : []),
  command.name(),
];
const fileOf = (command: Command) => `${pathOf(command).join('-')}.1`;

const defaultOf = ({ defaultValue, defaultValueDescription }: Option) => {
  const shown = defaultValueDescription ?? (typeof defaultValue === 'object' ? undefined : defaultValue);
  return shown === undefined || typeof shown === 'boolean' ? '' : ` (default: ${String(shown)})`;
};

const optionItems = (options: readonly Option[]) =>
  options.flatMap((option) => item(bold(option.flags), `${option.description}${defaultOf(option)}`));

/** The lines of "Example:" in its help. */
function examplesOf(command: Command): string[] {
  const parts: string[] = [];
  const output = command.configureOutput();
  command.configureOutput({ ...output, writeOut: (part) => void parts.push(part) });
  command.outputHelp();
  command.configureOutput(output);
  return [...parts.join('').matchAll(/^ {2}\$ (.*)$/gm)].map((match) => match[1]!);
}

/** Options that every command takes stand with the program. */
const globalOptionsOf = (command: Command): readonly Option[] => {
  let top = command;
  while (top.parent) top = top.parent;
  return top === command ? [] : top.options;
};

function settingLines(settings: readonly ManualSetting[]): string[] {
  return settings.flatMap(({ variable, describe, fallback }) =>
    item(bold(variable), `${describe}${fallback === '' ? '' : ` (default: ${fallback})`}`),
  );
}

function renderPage(command: Command, version: string, settings: readonly ManualSetting[]): ManualPage {
  const help = command.createHelp();
  const name = pathOf(command).join('-');
  const children = help.visibleCommands(command).filter((child) => child.name() !== 'help');
  const examples = examplesOf(command);
  const related = [...(command.parent ? [command.parent] : []), ...children].map(
    (one) => `.BR ${inRoff(pathOf(one).join('-'))} (1)`,
  );
  const lines = [
    `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`Skerry ${version}`)} "Skerry"`,
    ...section('NAME', [`${inRoff(name)} \\- ${inRoff(command.description())}`]),
    ...section('SYNOPSIS', [bold(help.commandUsage(command))]),
    ...section(
      'COMMANDS',
      children.flatMap((child) => item(bold(child.name()), child.description())),
    ),
    ...section(
      'ARGUMENTS',
      help.visibleArguments(command).flatMap((one) => item(bold(one.name()), one.description)),
    ),
    ...section('OPTIONS', optionItems(help.visibleOptions(command))),
    ...section('GLOBAL OPTIONS', optionItems(globalOptionsOf(command))),
    ...section('ENVIRONMENT', settingLines(settings)),
    ...section('EXAMPLES', examples.length === 0 ? [] : ['.nf', ...examples.map(inRoff), '.fi']),
    ...section('SEE ALSO', related),
  ];
  return { file: fileOf(command), text: `${lines.join('\n')}\n` };
}

/**
 * A page for every command and group of commands, the program itself first.
 * @param settingsOf of the daemon that a command runs; none where it runs none
 */
export function renderManual(
  program: Command,
  version: string,
  settingsOf: (path: string) => readonly ManualSetting[],
): ManualPage[] {
  const pagesOf = (command: Command): ManualPage[] => [
    renderPage(command, version, settingsOf(pathOf(command).join(' '))),
    ...command
      .createHelp()
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .flatMap(pagesOf),
  ];
  return pagesOf(program);
}
