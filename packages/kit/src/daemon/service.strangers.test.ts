import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

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

const LIMIT = { timeout: 30_000 };

test(
  'F10: a start that fails ends its process with its code, whatever it left open and whoever holds its channel',
  LIMIT,
  async (t) => {
    assert.equal(await start(t, 'fails').exited, 1);
    assert.equal(await start(t, 'is refused').exited, 2);
  },
);

test(
  'F10: a start that is stopped ends its process, and so does a service that leaves something open',
  LIMIT,
  async (t) => {
    for (const how of ['lasts', 'serves']) {
      const { child, exited } = start(t, how);
      await once(child, 'message');
      child.kill('SIGTERM');
      assert.equal(await exited, 0, how);
    }
  },
);
