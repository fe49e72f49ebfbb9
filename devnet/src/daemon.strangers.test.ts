import assert from 'node:assert/strict';
import { openSync, rmSync, writeFileSync } from 'node:fs';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type DaemonEvent, superviseDaemon } from './daemon.ts';
import { createTestDir, QUICK_LIMITS, TEST_DAEMON, until } from './testing/network.ts';

/** More ends in a row than a supervisor that gives up would have borne. */
const ENDS = 15;

for (const [served, name] of [
  [true, 'served before'],
  [false, 'never served'],
] as const)
  test(`F5: a daemon that ${name} is started again until its trouble is over`, async (t) => {
    await using dir = await createTestDir();
    const trouble = join(dir.path, 'trouble');
    const events: DaemonEvent[] = [];
    const count = (kind: DaemonEvent['kind']) => events.filter((event) => event.kind === kind).length;
    if (!served) writeFileSync(trouble, '');
    const daemon = superviseDaemon({
      name: 'core',
      lockFd: openSync(devNull, 'r'),
      command: () => ({
        file: '/bin/sh',
        args: ['-c', `test ! -e ${trouble} && exec ${process.execPath} ${TEST_DAEMON} core`],
        environment: { SKERRY_CORE_PORT: '0' },
      }),
      onLine: () => {},
      onEvent: (event) => events.push(event),
      limits: QUICK_LIMITS,
    });
    t.after(() => daemon.stop());
    if (served) {
      await daemon.ready;
      writeFileSync(trouble, '');
      process.kill(daemon.pid!, 'SIGKILL');
    } else await assert.rejects(daemon.ready, { code: 'DAEMON_FAILED' });
    await until('many ends', () => count('ended') >= ENDS);
    assert.equal(count('given-up'), 0);
    assert.equal(count('failing'), served ? 0 : 1);
    rmSync(trouble);
    await until('it serves', () => count('ready') === (served ? 2 : 1));
    assert.equal((await fetch(daemon.urls![0]!)).status, 200);
  });
