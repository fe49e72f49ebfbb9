import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '../daemon/log.ts';
import { readJsonOrSetAside } from './json-file.ts';

const parse = (value: unknown) => {
  const { version, names } = value as { version: number; names: string[] };
  if (version !== 1) throw new Error('not of this release');
  return names.map(String);
};

test('what cannot be read is set aside, said with the name of the kept copy, and counts as nothing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-json-file-'));
  const path = join(directory, 'names.json');
  const said: string[] = [];
  const log = createLogger('test', 'error', { write: (line) => void said.push(line) });
  const read = () => readJsonOrSetAside(path, { parse, instead: 'the names are asked for again', log });
  try {
    assert.equal(await read(), undefined);
    assert.deepEqual([await readdir(directory), said], [[], []], 'there is none');
    for (const text of ['', '{"version":1,"nam', 'null', '{"version":2,"names":{}}', '{"version":1}']) {
      said.length = 0;
      await writeFile(path, text);
      assert.equal(await read(), undefined);
      assert.deepEqual(await readdir(directory), ['names.json.unreadable']);
      assert.equal(await readFile(`${path}.unreadable`, 'utf8'), text);
      assert.equal(said.length, 1);
      assert.match(said[0]!, /names\.json\.unreadable.*the names are asked for again/);
    }
    said.length = 0;
    // Reading it fails as that of a damaged sector does: EIO.
    await symlink('/proc/self/mem', path);
    assert.equal(await read(), undefined);
    assert.equal(await readlink(`${path}.unreadable`), '/proc/self/mem');
    assert.match(said.join(), /EIO/);
    await writeFile(path, '{"version":1,"names":["a"]}');
    assert.deepEqual(await read(), ['a']);
    assert.deepEqual(await readdir(directory), ['names.json', 'names.json.unreadable']);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
