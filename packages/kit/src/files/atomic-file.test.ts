import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  createFileAtomically,
  loadOrCreateText,
  makeDirectory,
  readTextIfAny,
  renameDurably,
  writeFileAtomically,
} from './atomic-file.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'skerry-atomic-file-'));
});
after(() => rm(root, { recursive: true, force: true }));

const freshDirectory = () => mkdtemp(join(root, 'd-'));
const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test('a write leaves one file, the new one, with its mode', async () => {
  const directory = await freshDirectory();
  const path = join(directory, 'a');
  await writeFileAtomically(path, 'one', 0o644);
  await writeFileAtomically(path, new TextEncoder().encode('two'), 0o600);
  assert.equal(await readFile(path, 'utf8'), 'two');
  assert.equal(await modeOf(path), 0o600);
  assert.deepEqual(await readdir(directory), ['a']);
});

test('writers at the same time each write a whole file, and the last one counts', async () => {
  const directory = await freshDirectory();
  const path = join(directory, 'a');
  const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(100_000));
  await Promise.all(texts.map((text) => writeFileAtomically(path, text, 0o600)));
  assert.ok(texts.includes(await readFile(path, 'utf8')));
  assert.deepEqual(await readdir(directory), ['a']);
});

test('a write that fails leaves what was there, and nothing beside it', async () => {
  const directory = await freshDirectory();
  const path = join(directory, 'taken');
  await mkdir(join(path, 'below'), { recursive: true });
  await assert.rejects(writeFileAtomically(path, 'x', 0o600), { code: 'EISDIR' });
  await assert.rejects(writeFileAtomically(join(directory, 'none', 'a'), 'x', 0o600), { code: 'ENOENT' });
  assert.deepEqual(await readdir(directory), ['taken']);
});

test('what a killed process left half-written is removed, but not what another is writing now', async () => {
  const directory = await freshDirectory();
  const old = join(directory, 'b.0123456789ab.draft');
  const other = join(directory, 'my.draft');
  const young = join(directory, 'b.ba9876543210.draft');
  const before = new Date(Date.now() - 2 * 3_600_000);
  for (const path of [old, other, young]) await writeFile(path, 'half');
  for (const path of [old, other]) await utimes(path, before, before);
  await writeFileAtomically(join(directory, 'a'), 'x', 0o600);
  assert.deepEqual((await readdir(directory)).sort(), ['a', 'b.ba9876543210.draft', 'my.draft']);
});

test('a file is made once, whoever comes first', async () => {
  const directory = await freshDirectory();
  const path = join(directory, 'a');
  const made = await Promise.all(['x', 'y', 'z'].map((text) => createFileAtomically(path, text, 0o640)));
  assert.equal(made.filter(Boolean).length, 1);
  assert.equal(await readFile(path, 'utf8'), ['x', 'y', 'z'][made.indexOf(true)]);
  assert.equal(await modeOf(path), 0o640);
  assert.deepEqual(await readdir(directory), ['a']);
});

test('a text is made once and then read, the same for all who ask at once', async () => {
  const path = join(await freshDirectory(), 'a');
  let count = 0;
  const load = () => loadOrCreateText(path, async () => `text ${++count}`, 0o600);
  const all = await Promise.all([load(), load(), load()]);
  assert.equal(new Set(all).size, 1);
  count = 10;
  assert.equal(await load(), all[0]);
});

test('no file is told from a file that cannot be read', async () => {
  const directory = await freshDirectory();
  assert.equal(await readTextIfAny(join(directory, 'none')), undefined);
  await assert.rejects(readTextIfAny(directory), { code: 'EISDIR' });
});

test('directories are made with all above them, and renamed', async () => {
  const directory = await freshDirectory();
  const made = join(directory, 'one', 'two');
  await makeDirectory(made);
  await makeDirectory(made);
  assert.equal(await modeOf(made), 0o700);
  await renameDurably(made, join(directory, 'three'));
  assert.deepEqual((await readdir(directory)).sort(), ['one', 'three']);
});

test('a directory that cannot be made is said with what is in the way', async () => {
  const home = await freshDirectory();
  await makeDirectory(join(home, 'a', 'b'));
  await makeDirectory(join(home, 'a', 'b'));
  await writeFile(join(home, 'file'), '');
  for (const path of [join(home, 'file'), join(home, 'file', 'below')])
    await assert.rejects(makeDirectory(path), { code: 'INVALID_CONFIG', message: /file/ });
  // Here Node's own recursive mkdir tries for ever.
  await assert.rejects(makeDirectory('/proc/skerry/data'), {
    code: 'INVALID_CONFIG',
    message: /\/proc\/skerry\/data/,
  });
});
