import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RESTORING } from '../backup/keeping.ts';
import { enterDataDir, takeDataDir } from './presence.ts';

test('a data directory is one process’s, or that of several that share it, and nobody’s while a restore is under way', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-presence-'));
  t.after(() => rm(home, { recursive: true }));
  const enter = (name: string, isShared: boolean) => enterDataDir(join(home, name), { isShared, waitMs: 0 });
  await enter('alone', false);
  const message = new RegExp(`^process ${process.pid} works in .*: stop it first`);
  await assert.rejects(enter('alone', false), { code: 'NODE_RUNNING', message });
  await enter('shared', true);
  await enter('shared', true);
  {
    using _restoring = await takeDataDir(await makeIn(home, 'restored'));
    await assert.rejects(enter('restored', true), { code: 'NODE_RUNNING', message: /is being restored/ });
    await assert.rejects(enter('restored', false), { code: 'NODE_RUNNING', message });
  }
  await makeIn(home, join('restored', RESTORING));
  await assert.rejects(enter('restored', true), { code: 'INVALID_CONFIG', message: /repeat it.*--force/ });
});

async function makeIn(home: string, name: string): Promise<string> {
  const directory = join(home, name);
  await mkdir(directory);
  return directory;
}
