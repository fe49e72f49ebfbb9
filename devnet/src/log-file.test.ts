import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLogFile } from './log-file.ts';
import { createTestDir } from './testing/network.ts';

test('rotates at the limit, keeps three files, and loses no line between them', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  {
    using log = openLogFile(path, 30);
    for (let i = 0; i < 10; i++) log.write(`line number ${i}`);
  }
  assert.deepEqual(readdirSync(dir.path).sort(), ['core.log', 'core.log.1', 'core.log.2']);
  const text = ['.2', '.1', ''].map((age) => readFileSync(`${path}${age}`, 'utf8')).join('');
  assert.equal(text, [4, 5, 6, 7, 8, 9].map((i) => `line number ${i}\n`).join(''));
});

test('goes on where it was, and a line after the end is dropped', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  for (const text of ['first', 'second']) {
    const log = openLogFile(path);
    log.write(text);
    log[Symbol.dispose]();
    log.write('too late');
  }
  assert.equal(readFileSync(path, 'utf8'), 'first\nsecond\n');
});

test('on a full disk lines are lost and nothing else; the file says how many when there is room again', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  symlinkSync('/dev/full', path);
  using log = openLogFile(path);
  for (const line of ['first', 'second']) log.write(line);
  unlinkSync(path);
  for (const line of ['third', 'fourth']) log.write(line);
  const [notice, ...lines] = readFileSync(path, 'utf8').trim().split('\n');
  assert.deepEqual(lines, ['third', 'fourth']);
  assert.equal((JSON.parse(notice!) as { lines: number }).lines, 2);
});

test('a log that cannot be rotated keeps what it has, and goes on when it can', async () => {
  await using dir = await createTestDir();
  const path = join(dir.path, 'core.log');
  mkdirSync(`${path}.next`);
  using log = openLogFile(path, 20);
  for (const line of ['a line that is long', 'another one', 'a third one']) log.write(line);
  assert.equal(readFileSync(path, 'utf8'), 'a line that is long\n');
  rmdirSync(`${path}.next`);
  log.write('after it');
  const texts = readdirSync(dir.path)
    .sort()
    .map((name) => readFileSync(join(dir.path, name), 'utf8'));
  assert.deepEqual(
    texts.filter((text) => !text.includes('"lines":2')),
    ['after it\n', 'a line that is long\n'],
  );
});
