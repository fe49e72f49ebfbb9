import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createTestCore } from '../testing/core.ts';

/** More than the listeners of one sort that Node takes for a leak. */
const REQUESTS = 40;

test('F9: requests over one connection leave no listeners on it', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  await using core = await createTestCore();
  const { signal } = new AbortController();
  const { id } = await core.rooms.ipfs.add(Readable.from([Buffer.from('hello')]), {
    cidVersion: 1,
    limitBytes: 100,
    signal,
  });
  const url = await core.listen();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const sockets = new Set<unknown>();
  for (let n = 0; n < REQUESTS; n++) {
    for (const path of [`/storage/raw/${id.text}`, `/ipfs/${id.text}`]) {
      const [response] = (await once(get(`${url}/api/v0${path}`, { agent }), 'response')) as [
        IncomingMessage,
      ];
      assert.equal(response.statusCode, 200);
      sockets.add(response.socket);
      response.resume();
      await once(response, 'end');
    }
  }
  // Warnings are told on the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(sockets.size, 1, 'all of them over one connection');
  assert.deepEqual(
    warnings.map(({ name }) => name),
    [],
  );
});
