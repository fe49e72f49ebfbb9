import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
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
