import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import { hashOf, instance } from '../table/testing/setup.ts';
import { readState, type StoredState, writeState } from './store.ts';

const log = createLogger('test', 'silent');
const policy = { allowLocal: true, allowPrivate: false };

async function temporaryDirectory(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'skerry-gateway-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

const state: StoredState = {
  instances: [
    instance({ reason: 'because', reasonCode: 'BECAUSE' }),
    instance({ hash: hashOf('ab'), ipv6: null, desired: 'stopped', phase: 'failed' }),
  ],
  cursor: '17',
  lastSyncTime: 1234.5,
};

test('what is written is read again', async () => {
  await using directory = await temporaryDirectory();
  const dataDir = join(directory.path, 'new');
  assert.equal(await readState(dataDir, policy, log), undefined);
  await writeState(dataDir, state);
  assert.deepEqual(await readState(dataDir, policy, log), state);
  assert.deepEqual(await readdir(dataDir), ['routes.json'], 'nothing else is left behind');
});

test('a file that cannot be read is as good as none, and never half of one', async () => {
  await using directory = await temporaryDirectory();
  await writeState(directory.path, state);
  const file = join(directory.path, 'routes.json');
  const text = await readFile(file, 'utf8');
  for (const damaged of [
    '',
    text.slice(0, -10),
    '[]',
    text.replace('"format":1', '"format":2'),
    text.replace('5330', 'zzzz'),
  ]) {
    await writeFile(file, damaged);
    assert.equal(await readState(directory.path, policy, log), undefined);
  }
});

test('kill -9 in the middle of writing leaves a whole file', async () => {
  await using directory = await temporaryDirectory();
  const lengths = new Set<number>();
  for (let round = 0; round < 6; round++) {
    const writer = fork(join(import.meta.dirname, 'testing/writer.ts'), [directory.path]);
    // Some way into the next write; each round at another place.
    for (let i = 0; i <= round; i++) await awaitReady(writer, 'the writer');
    await endProcess(writer, 'SIGKILL');
    const read = await readState(directory.path, policy, log);
    assert.equal(read?.instances.length, Number(read?.cursor));
    lengths.add(read!.instances.length);
  }
  assert.ok(lengths.size > 0);
});
