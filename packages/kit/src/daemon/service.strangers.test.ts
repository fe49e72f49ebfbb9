import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { awaitReady } from '../testing/processes.ts';

/** A service's process, whose parent's channel stays open for as long as the test wants. */

const PROCESS = fileURLToPath(new URL('../testing/service.ts', import.meta.url));

function start(t: TestContext, how: string): { child: ChildProcess; exited: Promise<number | null> } {
  const child = fork(PROCESS, [], {
    env: { ...process.env, TEST_START: how, SKERRY_LOG_LEVEL: 'silent' },
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  t.after(() => child.kill('SIGKILL'));
  return { child, exited: once(child, 'exit').then(([code]) => code as number | null) };
}

test('F10: a start that fails ends its process with its code, whatever it left open and whoever holds its channel', async (t) => {
  const ways = ['fails', 'is refused', 'is older than its data'];
  const codes = await Promise.all(ways.map((how) => start(t, how).exited));
  assert.deepEqual(codes, [1, 2, 2]);
});

test('F10: a start that is stopped ends its process, and so does a service that leaves something open', async (t) => {
  const codes = await Promise.all(
    ['lasts', 'serves'].map(async (how) => {
      const { child, exited } = start(t, how);
      await awaitReady(child, 'the service');
      child.kill('SIGTERM');
      return exited;
    }),
  );
  assert.deepEqual(codes, [0, 0]);
});
