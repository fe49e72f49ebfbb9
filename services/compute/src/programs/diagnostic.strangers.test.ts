import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { createClientOf, createHttpServer, createLogger, listen, readConfig } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { computeConfig } from '../config.ts';
import { openPrograms } from './open.ts';

test('S2: the diagnostic program answers where the monitors of the network ask for it', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  await using stack = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'skerry-diagnostic-'));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const log = createLogger('test', 'error');
  const service = stack.use(
    await openPrograms({
      config: readConfig(computeConfig, { SKERRY_HOME: home }),
      // Nobody is there: the program needs no message.
      core: new CoreClient({ url: 'http://127.0.0.1:1' }),
      sync: new CoreSync('http://127.0.0.1:1'),
      nodeId: sha256Hex(home),
      log,
      signal: new AbortController().signal,
    }),
  );
  const app = await createHttpServer({ log });
  stack.defer(() => app.close());
  await service.addRoutes(app, createClientOf({ trustedProxies: [], exempt: [] }));
  const url = await listen(app, '127.0.0.1', 0);
  for (const hash of [
    '63faf8b5db1cf8d965e6a464a0cb8062af8e7df131729e48738342d956f29ace',
    '67705389842a0a1b95eaa408b009741027964edc805997475e95c505d642edd8',
  ]) {
    const answer = await fetch(`${url}/vm/${hash}`);
    assert.deepEqual([answer.status, await answer.json()], [200, { Example: 'example_fastapi' }]);
  }
  assert.equal((await fetch(`${url}/status/check/fastapi`)).status, 200);
});
