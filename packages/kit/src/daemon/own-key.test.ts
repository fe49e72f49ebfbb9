import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Kept } from '../backup/keeping.ts';
import { keepOwnKey } from './own-key.ts';

test('a service whose key is gone does not go on as another one where it has worked before', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-own-key-'));
  t.after(() => rm(directory, { recursive: true }));
  const key = join(directory, 'node.key');
  const entries: Kept[] = [
    { path: 'node.key', kind: 'secret', what: 'its key' },
    { path: 'hours/*.json', kind: 'state', what: 'hours' },
  ];
  const keep = () => keepOwnKey({ identity: 'node.key', entries }, directory);
  // A lock and a disk's own directory are of no service.
  await Promise.all([writeFile(join(directory, 'running.lock'), ''), mkdir(join(directory, 'lost+found'))]);
  await keep();
  const made = await readFile(key, 'utf8');
  await mkdir(join(directory, 'hours'));
  await keep();
  assert.equal(await readFile(key, 'utf8'), made);
  await rm(key);
  // A disk of its own that an operator made ready before the first start.
  await mkdir(join(directory, 'hours', 'lost+found'));
  await keep();
  await rm(key);
  await writeFile(join(directory, 'hours', '1.json'), '');
  await assert.rejects(keep(), {
    code: 'INVALID_CONFIG',
    message: /node\.key is missing.*has hours of it still.*skerry restore/,
  });
  await assert.rejects(readFile(key), { code: 'ENOENT' });
  await keepOwnKey({ entries }, directory);
});
