import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Command } from 'commander';
import type { CommandHost } from '../host.ts';
import { createProgram } from '../program.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

/** Nothing listens on the discard port. */
const NOWHERE = 'http://127.0.0.1:9';
const stream = new PassThrough();
const host = { environment: {}, stdin: stream, stdout: stream, stderr: stream } as unknown as CommandHost;
const lastOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(lastOf);
const pathOf = (command: Command): string[] =>
  command.parent ? [...pathOf(command.parent), command.name()] : [];

/** All but those that serve, look at this machine, or end this process. */
const ASKING =
  /^(?:network|key|instance|image list|program|message|file|webhook|domain|vrf|indexer|node|score)\b/;
const asking = lastOf(createProgram(host, () => {})).filter((one) => ASKING.test(pathOf(one).join(' ')));

const ITEM_HASH = 'f'.repeat(64);
const ADDRESS = `0x${'1'.repeat(40)}`;
/** What an argument or an option that must be there may be; others are words. */
const valuesIn = (home: string): Readonly<Record<string, string>> => ({
  ...{ hash: ITEM_HASH, instance: ITEM_HASH, contract: ADDRESS, words: 'zoo-zoo-zoo-zoo' },
  ...{ url: NOWHERE, first: NOWHERE, second: NOWHERE, file: join(home, 'f.py'), path: join(home, 'f.py') },
  ...{ '--content': '{"type":"a","content":1}', '--abi': '["event X()"]', '--answer': '{}' },
  '--output': join(home, 'written'),
});

test('with --json every command that asks answers with one JSON value: on standard output, or of an error on the other', async () => {
  assert.ok(asking.length > 60, `${asking.length}`);
  await using home = await createTestDir();
  const values = valuesIn(home.path);
  await writeFile(values.file!, 'print(1)\n');
  const environment = { PATH: process.env.PATH, SKERRY_HOME: home.path, HOME: home.path };
  await skerryHere(environment, ['key', 'new']);
  const ask = (...args: string[]) =>
    skerryHere(environment, [...args, '--core', NOWHERE, '--gateway', NOWHERE, '--json']);
  for (const command of asking) {
    const path = pathOf(command);
    const wordOf = (name: string) => values[name] ?? 'web';
    const needed = [
      ...command.registeredArguments.flatMap((one) => (one.required ? [wordOf(one.name())] : [])),
      ...command.options.flatMap(({ mandatory, long }) => (mandatory ? [long!, wordOf(long!)] : [])),
      ...command.options.flatMap(({ long }) => (long === '--yes' ? [long] : [])),
    ];
    const { out, err, code } = await ask(...path, ...needed);
    const [told, silent] = code === 0 ? [out, err] : [err, out];
    assert.equal(silent, '', `${path.join(' ')}: ${code}`);
    const value = JSON.parse(told);
    if (code !== 0) assert.equal(value.status, 'error', path.join(' '));

    const wrong = await ask(...path, '--no-such-option');
    assert.deepEqual([wrong.code, wrong.out], [2, ''], path.join(' '));
    const { code: reason, error, hint } = JSON.parse(wrong.err);
    assert.equal(reason, 'INVALID_PARAMETERS');
    assert.match(error, /unknown option '--no-such-option'/);
    assert.equal(hint, `see "skerry ${path.join(' ')} --help"`);
  }
});
