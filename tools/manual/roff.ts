import { type Command, describeCommand, type Entry, type ManualSetting, pathOf } from './describe.ts';

/** Manual pages (man(7)), made from the commands and from the settings of the daemons. Pure. */

export interface ManualPage {
  /** `skerry-instance-create.1` */
  readonly file: string;
  readonly text: string;
}

/** Text that roff takes as it is: no escapes, no hyphen that becomes another sign, no request at the start of a line; hashes and lists of them may be broken. */
const inRoff = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/[0-9a-f]{32},?(?=[0-9a-f]{32})/g, '$&\\:')
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

const fileOf = (command: Command) => `${pathOf(command).join('-')}.1`;
const items = (entries: readonly Entry[]) => entries.flatMap(({ term, text }) => item(bold(term), text));

function settingLines(settings: readonly ManualSetting[]): string[] {
  return settings.flatMap(({ variable, describe, fallback }) =>
    item(bold(variable), `${describe}${fallback === '' ? '' : ` (default: ${fallback})`}`),
  );
}

function renderPage(command: Command, version: string, settings: readonly ManualSetting[]): ManualPage {
  const { path, description, usage, children, args, options, globalOptions, examples } =
    describeCommand(command);
  const name = path.join('-');
  const related = [...(command.parent ? [command.parent] : []), ...children].map(
    (one) => `.BR ${inRoff(pathOf(one).join('-'))} (1)`,
  );
  const commands = children.map((child) => ({ term: child.name(), text: child.description() }));
  const lines = [
    `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`Skerry ${version}`)} "Skerry"`,
    // Words such as names of settings are too long for a straight right margin.
    '.ad l',
    ...section('NAME', [`${inRoff(name)} \\- ${inRoff(description)}`]),
    ...section('SYNOPSIS', [bold(usage)]),
    ...section('COMMANDS', items(commands)),
    ...section('ARGUMENTS', items(args)),
    ...section('OPTIONS', items(options)),
    ...section('GLOBAL OPTIONS', items(globalOptions)),
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
    ...describeCommand(command).children.flatMap(pagesOf),
  ];
  return pagesOf(program);
}
