import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../program.ts';
import { createTestDir } from '../testing/run.ts';
import { renderCompletion, SHELLS } from './scripts.ts';
import { listPlaces } from './tree.ts';

const { stdin, stdout, stderr } = process;
const program = createProgram({ environment: {}, stdin, stdout, stderr }, () => {});
const places = listPlaces(program);

const listPaths = (command: Command, parent = ''): string[] => {
  const path = `${parent}${command.name()}`;
  return [path, ...command.commands.flatMap((child) => listPaths(child, `${path} `))];
};

test('every command, and every option of it, is in the script of every shell', () => {
  const hidden = ['skerry completion values'];
  assert.deepEqual(
    places.map(({ path }) => path).toSorted(),
    listPaths(program)
      .filter((path) => !hidden.includes(path))
      .toSorted(),
  );
  for (const shell of SHELLS) {
    const script = renderCompletion(shell, places);
    for (const { path, options } of places) {
      assert.ok(script.includes(path), `${shell}: ${path}`);
      for (const { name } of options)
        assert.ok(
          script.includes(shell === 'fish' ? `-l ${name.slice(2)}` : name),
          `${shell}: ${path} ${name}`,
        );
    }
  }
});

test('names are asked for where one belongs', () => {
  const valuesOf = (path: string, option?: string) => {
    const place = places.find((one) => one.path === path);
    return option === undefined ? place?.values : place?.options.find(({ name }) => name === option)?.values;
  };
  assert.equal(valuesOf('skerry instance ssh'), 'instances');
  assert.equal(valuesOf('skerry domain why'), 'words');
  assert.equal(valuesOf('skerry network use'), 'networks');
  assert.equal(valuesOf('skerry network add'), 'words');
  assert.equal(valuesOf('skerry', '--key'), 'keys');
  assert.equal(valuesOf('skerry', '--network'), 'networks');
  assert.equal(valuesOf('skerry instance backup', '--output'), 'files');
  assert.equal(valuesOf('skerry instance create', '--wait'), undefined);
});

/** What bash offers for the last of these words. `skerry` is a script that names two instances. */
async function completeInBash(...words: string[]): Promise<string[]> {
  await using dir = await createTestDir();
  const skerry = join(dir.path, 'skerry');
  await writeFile(
    skerry,
    '#!/bin/sh\n[ "$3" = instances ] && printf "web\\ndb\\n"; [ "$3" = keys ] && echo work; true\n',
  );
  await chmod(skerry, 0o755);
  const line = words.map((word) => `'${word}'`).join(' ');
  const script = `${renderCompletion('bash', places)}
COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); _skerry
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { PATH: `${dir.path}:${process.env.PATH}` };
  const { stdout: text, stderr: err, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8', env });
  assert.equal(status, 0, err);
  return text.split('\n').filter((one) => one !== '');
}

test('bash completes commands, options and names', async () => {
  assert.deepEqual(await completeInBash('skerry', 'instance', 'cr'), ['create']);
  assert.deepEqual(await completeInBash('skerry', '--key', 'work', 'inst'), ['instance']);
  assert.deepEqual(await completeInBash('skerry', 'instance', 'create', '--na'), ['--name']);
  assert.deepEqual(await completeInBash('skerry', 'instance', 'create', '--js'), ['--json']);
  assert.deepEqual(await completeInBash('skerry', 'instance', 'ssh', ''), ['web', 'db']);
  assert.deepEqual(await completeInBash('skerry', 'status', '--key', 'w'), ['work']);
  assert.deepEqual(await completeInBash('skerry', 'instance', 'create', '--name', 'w'), []);
});
