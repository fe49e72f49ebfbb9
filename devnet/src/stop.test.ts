import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { ownLockFile } from './locks.ts';
import { stopDevnet } from './stop.ts';
import { createTestDir, isAlive } from './testing/network.ts';
import { startOutside } from './testing/outside.ts';

/** A process that ends lets go of its locks a moment before it is gone. */
const untilEnded = (pids: readonly number[]) =>
  until('all have ended', () => pids.every((pid) => !isAlive(pid)));

const LIMITS = { devnetMs: 20_000, daemonsMs: 20_000 };

test('a network that runs is ended with its daemons; where none is, nothing happens', async () => {
  await using dir = await createTestDir();
  const told: string[] = [];
  assert.equal(await stopDevnet(dir.path, (was) => told.push(was), LIMITS), 'stopped');
  const { parent, pids } = await startOutside(dir.path);
  assert.equal(await stopDevnet(dir.path, (was) => told.push(was), LIMITS), 'running');
  await untilEnded([parent.pid!, ...pids]);
  assert.equal(await stopDevnet(dir.path, (was) => told.push(was), LIMITS), 'stopped');
  assert.deepEqual(told, ['running']);
});

test('of a network that was killed, a daemon that does not end is killed', async () => {
  await using dir = await createTestDir();
  const { parent, pids } = await startOutside(dir.path, { gateway: 'stubborn' });
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  assert.equal(await stopDevnet(dir.path, () => {}, { devnetMs: 20_000, daemonsMs: 1_000 }), 'ending');
  await untilEnded(pids);
});

test('a number in the file that is not of the network is left alone', async () => {
  await using dir = await createTestDir();
  const { parent, pids } = await startOutside(dir.path);
  // What an earlier devnet wrote may be anybody's number by now: here it is this process's own.
  await writeFile(ownLockFile(dir.path), `${process.pid}\n`);
  await stopDevnet(dir.path, () => {}, { devnetMs: 500, daemonsMs: 500 });
  await untilEnded([parent.pid!, ...pids]);
});
