import {
  type Command,
  type Described,
  describeCommand,
  type Entry,
  type ManualSetting,
} from '../manual/describe.ts';
import { cell, code, fence, type Page, prose } from './markdown.ts';

/** The reference of the command line, from what manual pages are made of: a page for each command of the program. Pure. */

const TOP = 'reference/commands';
/** Every command has it. */
const HELP = '-h, --help';

const rowsOf = (entries: readonly Entry[]) =>
  entries.map(({ term, text }) => `| ${cell(code(term))} | ${cell(prose(text))} |`).join('\n');

const tableOf = (title: string, entries: readonly Entry[]): string =>
  entries.length === 0 ? '' : `**${title}**\n\n| | |\n| --- | --- |\n${rowsOf(entries)}`;

const asEntries = (settings: readonly ManualSetting[]): Entry[] =>
  settings.map(({ variable, describe, fallback }) => ({
    term: variable,
    text: `${describe}${fallback === '' ? '' : ` (default: ${fallback})`}`,
  }));

const sentence = (text: string) => `${prose(text.charAt(0).toUpperCase() + text.slice(1))}.`;
const anchorOf = ({ path }: Described) => path.slice(1).join('-');

type SettingsOf = (path: string) => readonly ManualSetting[];

function renderCommand(described: Described, level: number, settingsOf: SettingsOf): string[] {
  const { path, description, usage, args, options, examples, children } = described;
  const parts = [
    `${'#'.repeat(level)} ${path.join(' ')} {#${anchorOf(described)}}`,
    sentence(description),
    fence('text', usage),
    tableOf('Arguments', args),
    tableOf(
      'Options',
      options.filter(({ term }) => term !== HELP),
    ),
    tableOf('Settings', asEntries(settingsOf(path.join(' ')))),
    examples.length === 0 ? '' : fence('sh', examples.join('\n')),
  ];
  return [
    ...parts.filter(Boolean),
    // A page has two levels of headings in its outline.
    ...children.flatMap((child) => renderCommand(describeCommand(child), Math.min(level + 1, 3), settingsOf)),
  ];
}

const linkTo = ({ path, description }: Described) =>
  `| [${path.join(' ')}](/${TOP}/${path[1]}) | ${cell(prose(description))} |`;

/** @param settingsOf of the daemon that a command runs */
export function renderCommands(program: Command, settingsOf: SettingsOf): Page[] {
  const { description, options, children } = describeCommand(program);
  const commands = children.map(describeCommand);
  const text = (parts: readonly string[]) => `${parts.join('\n\n')}\n`;
  const index = [
    '# Commands',
    sentence(description),
    'How networks, keys and scripts work is in [The command line](/command-line). `skerry COMMAND --help` says the same as these pages.',
    `| command | |\n| --- | --- |\n${commands.map(linkTo).join('\n')}`,
    '## Options of every command',
    tableOf('Options', options),
  ];
  return [
    { path: `${TOP}/index.md`, title: 'Commands', text: text(index) },
    ...commands.map((one): Page => {
      const name = one.path[1]!;
      return { path: `${TOP}/${name}.md`, title: name, text: text(renderCommand(one, 1, settingsOf)) };
    }),
  ];
}
