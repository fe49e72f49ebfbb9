import assert from 'node:assert/strict';
import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { skerryHere } from '../testing/here.ts';
import { startPerson } from '../testing/person.ts';
import { createTestDir } from '../testing/run.ts';

/** Costs three CPU seconds. */
test('a daemon has its address before it runs, and keeps it; its settings are those of the file', async () => {
  await using home = await createTestDir();
  const skerry = await startPerson(home.path, {});
  const settings = join(home.path, 'scheduler.env');
  const directory = join(home.path, 'elsewhere');
  await writeFile(settings, `SKERRY_SCHEDULER_DATA_DIR=${directory}\n`);
  const first = await skerry('scheduler', 'address', '--settings', settings);
  assert.deepEqual([first.err, first.code], ['', 0]);
  const keyFile = join(directory, 'key');
  assert.equal((await stat(keyFile)).mode & 0o777, 0o600);
  const { address } = createSigner(await loadOrCreateKeyFile(keyFile));
  assert.equal(first.out, `${address}\n`);
  const again = await skerry('scheduler', 'address', '--settings', settings, '--json');
  assert.deepEqual(JSON.parse(again.out), { role: 'scheduler', address, key_file: keyFile });
  const shown = await skerry('scheduler', 'config', '--settings', settings);
  assert.match(shown.out, new RegExp(`^SKERRY_SCHEDULER_DATA_DIR=${directory}$`, 'm'));

  // Of a daemon that has worked, another key would be another daemon.
  await writeFile(settings, `SKERRY_CREDIT_DATA_DIR=${directory}\n`);
  const credit = ['credit', 'address', '--settings', settings] as const;
  assert.equal((await skerry(...credit)).out, `${address}\n`);
  await writeFile(join(directory, 'purchases.jsonl'), '{}');
  await rm(keyFile);
  const lost = await skerry(...credit);
  assert.match(lost.err, /key is missing, and others know this service by it.* \(INVALID_CONFIG\)/);
  await assert.rejects(stat(keyFile), { code: 'ENOENT' });
});

test('a key that is made where "skerry up" has another one is told to be another one', async () => {
  await using home = await createTestDir();
  const devnet = join(home.path, 'data', 'devnet', 'core');
  await loadOrCreateKeyFile(join(devnet, 'node.key'));
  const address = (more: object) => skerryHere({ SKERRY_HOME: home.path, ...more }, ['core', 'address']);
  const { err } = await address({});
  assert.match(err, /is a new key; the core daemon of "skerry up" has its own: SKERRY_CORE_DATA_DIR=/);
  assert.equal((await address({})).err, '');
  assert.equal((await address({ SKERRY_CORE_DATA_DIR: devnet })).err, '');
});
