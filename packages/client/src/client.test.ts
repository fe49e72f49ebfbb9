import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { verifyEnvelope } from '@skerry/protocol';
import { signMessage } from './message.ts';
import { request } from './request.ts';
import { createSigner, generatePrivateKey } from './signer.ts';

test('what the client signs, the protocol verifies, under the hash that the client foretold', () => {
  const signer = createSigner(generatePrivateKey());
  const { body, itemHash } = signMessage(
    { type: 'POST', content: { type: 'x', content: 'é "quoted" \u2028' } },
    signer,
  );
  const verified = verifyEnvelope(body, Math.floor(Date.now() / 1000));
  assert.equal(verified.itemHash, itemHash);
  assert.equal(verified.sender, signer.address);
});

test('two equal messages of one second are two messages', () => {
  const signer = createSigner(generatePrivateKey());
  const draft = { type: 'POST', content: { type: 'x' }, timestamp: 1 };
  assert.notEqual(signMessage(draft, signer).itemHash, signMessage(draft, signer).itemHash);
});

test('a key out of range is refused and not repeated', () => {
  for (const bad of ['', '0x12', 'f'.repeat(64), '0'.repeat(64), 'g'.repeat(64)]) {
    assert.throws(
      () => createSigner(bad),
      (error: Error) => !bad || !error.message.includes(bad),
    );
  }
});

test('failures are ours: the code of the node, or that no node answered', async () => {
  const server = createServer((request, response) => {
    response.statusCode = 404;
    response.end(
      request.url === '/ours' ? '{"error":"gone","status":"error","code":"INSTANCE_NOT_FOUND"}' : '<html>',
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await assert.rejects(request(`${url}/ours`), { code: 'INSTANCE_NOT_FOUND', message: 'gone' });
  await assert.rejects(request(`${url}/other`), { code: 'UPSTREAM_UNAVAILABLE' });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(request(`${url}/ours`), { code: 'UPSTREAM_UNAVAILABLE' });
});
