import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Command, Option } from 'commander';
import type { CommandHost } from './host.ts';
import { createProgram } from './program.ts';

const listCommands = (command: Command): Command[] => [command, ...command.commands.flatMap(listCommands)];
const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

const stream = new PassThrough();
const printed: string[] = [];
const stdout = { write: (text: string) => printed.push(text) };
const commands = listCommands(
  createProgram(
    { environment: {}, stdin: stream, stdout, stderr: stream } as unknown as CommandHost,
    () => {},
  ),
);

/** An option that may be repeated gathers what it is given, and begins with nothing. */
const isGathered = ({ defaultValue }: Option) => Array.isArray(defaultValue) && defaultValue.length === 0;

test('every argument says what it is', () => {
  const silent = commands.flatMap((command) =>
    command.registeredArguments
      .filter(({ description }) => description === '')
      .map((argument) => `${pathOf(command)} ${argument.name()}`),
  );
  assert.deepEqual(silent, []);
});

test('the help of every command that does something has an example', () => {
  const able = commands.filter(
    (command) => (command as unknown as { _actionHandler?: unknown })._actionHandler,
  );
  assert.ok(able.length > 80, `${able.length}`);
  const silent = able.filter((command) => {
    printed.length = 0;
    command.outputHelp();
    return !/\nExamples?:\n {2}\$ /.test(printed.join(''));
  });
  assert.deepEqual(silent.map(pathOf), []);
});

test('whoever types the default of an option that help shows gets the default', () => {
  const shown = commands.flatMap((command) =>
    command.options
      .filter((option) => option.defaultValue !== undefined && !isGathered(option))
      .map((option) => ({ name: `${pathOf(command)} ${option.flags}`, option })),
  );
  assert.ok(shown.length > 20);
  for (const { name, option } of shown) {
    const { parseArg, defaultValue, defaultValueDescription } = option;
    const text = defaultValueDescription ?? String(defaultValue);
    const typed = parseArg === undefined ? text : parseArg(text, defaultValue);
    assert.deepEqual(typed, defaultValue, `${name}, default: ${text}`);
  }
});

/** Options of a command, with those that every command takes. */
const optionsOf = (command: Command): string[] => [
  ...command.options.flatMap(({ long, short }) => [long, short].filter((one) => one != null)),
  ...(command.parent ? optionsOf(command.parent) : ['--help', '-h']),
];

/** The command that words name, and the words behind it; undefined where they are prose. */
function findCommand(words: readonly string[]): { command: Command; rest: readonly string[] } | undefined {
  let command = commands[0]!;
  let at = 0;
  for (; at < words.length; at++) {
    const next = command.commands.find(
      (one) => one.name() === words[at] || one.aliases().includes(words[at]!),
    );
    if (!next) break;
    command = next;
  }
  return at === 0 ? undefined : { command, rest: words.slice(at) };
}

test('every command line that is told to people has the options that it is told with', () => {
  const told = globSync('**/*.ts', { cwd: import.meta.dirname, exclude: (name) => /\.test\.ts$/.test(name) })
    .flatMap(
      (path) =>
        readFileSync(join(import.meta.dirname, path), 'utf8')
          // What is put in is one word.
          .replace(/\$\{[^{}]*\}/g, 'X')
          .match(/\b(?:skerry|X) [a-z][^"'`\n;,.)]*/g) ?? [],
    )
    .map((line) => ({ line, found: findCommand(line.split(' ').slice(1)) }))
    // Whose command is put in, is not known.
    .filter(({ found }) => found !== undefined && found.rest[0] !== 'X');
  assert.ok(told.length > 50, `${told.length}`);
  const wrong = told.filter(({ found }) => {
    const known = new Set(optionsOf(found!.command));
    const end = found!.rest.indexOf('--');
    return found!.rest
      .slice(0, end === -1 ? undefined : end)
      .some((word) => /^--[a-z]/.test(word) && !known.has(word.split('=')[0]!));
  });
  assert.deepEqual(
    wrong.map(({ line }) => line),
    [],
  );
});

test('whoever is told to look or to confirm by an option has it', () => {
  // Both are asked by joining/questions.ts.
  for (const name of ['join', 'leave'])
    for (const option of ['--dry-run', '--yes'])
      assert.ok(optionsOf(findCommand([name])!.command).includes(option), `${name} ${option}`);
});
