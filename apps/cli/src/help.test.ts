import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Command, Option } from 'commander';
import type { CommandHost } from './host.ts';
import { createProgram } from './program.ts';

const listCommands = (command: Command): Command[] => [command, ...command.commands.flatMap(listCommands)];
const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

const stream = new PassThrough();
const commands = listCommands(
  createProgram(
    { environment: {}, stdin: stream, stdout: stream, stderr: stream } as unknown as CommandHost,
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
