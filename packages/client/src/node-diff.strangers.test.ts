import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { END, encodeRanges, type Range, START, sha256Hex } from '@skerry/protocol';
import type { SyncStatusView } from '@skerry/protocol/api/core/sync';
import { CORE_EXAMPLES } from '@skerry/protocol/api/examples/core/index';
import { diffNodes } from './node-diff.ts';

/** A node that has one message more than others, or none, and says what it likes of it. */
async function serve(ranges: readonly Range[], frame = '') {
  const { forgotten: _, ...status } = CORE_EXAMPLES.getSyncStatus!.answer as SyncStatusView;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(frame.length);
  const answers: Readonly<Record<string, Uint8Array>> = {
    '/api/v0/sync/ranges': encodeRanges(ranges),
    '/api/v0/sync/messages': Buffer.concat([length, Buffer.from(frame)]),
  };
  const server = createServer((request, response) => {
    request.resume();
    const bytes = answers[request.url!];
    response.setHeader('content-type', bytes ? 'application/octet-stream' : 'application/json');
    response.end(bytes ?? JSON.stringify(status));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('the name of a message is a hash, whatever a node says, and an earlier release compares no forgotten ones', async () => {
  const name = '\u001b[2J\u001b[31mthe same';
  const hash = sha256Hex(name).slice(0, 32);
  const keys = [{ time: 1, id: `${hash}00000000` }];
  await using liar = await serve(
    [{ kind: 'keys', lower: START, upper: END, keys }],
    JSON.stringify({ forgotten: { item_hash: name } }),
  );
  await using honest = await serve([{ kind: 'keys', lower: START, upper: END, keys: [] }]);
  const { onlyFirst, onlySecond, forgotten } = await diffNodes(liar.url, honest.url);
  assert.deepEqual([onlyFirst, onlySecond, forgotten], [[{ time: 1, hash }], [], null]);
});

test('a node that lists keys without an end is left', async () => {
  const keys = Array.from({ length: 8_000 }, (_, at) => ({ time: at, id: '0'.repeat(40) }));
  const middle = { time: 10_000, prefix: new Uint8Array() };
  const endless: Range[] = [
    { kind: 'keys', lower: START, upper: middle, keys },
    { kind: 'fingerprint', lower: middle, upper: END, fingerprint: new Uint8Array(16) },
  ];
  await using liar = await serve(endless);
  await using honest = await serve([]);
  await assert.rejects(diffNodes(liar.url, honest.url), { code: 'UPSTREAM_UNAVAILABLE' });
});
