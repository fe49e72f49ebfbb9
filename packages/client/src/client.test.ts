import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { verifyEnvelope } from '@skerry/protocol';
import { MachineClient } from './compute/machine-client.ts';
import { CoreClient } from './core-client.ts';
import { GatewayClient } from './gateway-client.ts';
import { requestMessage, signMessage } from './message.ts';
import { OwnerPass } from './owner-pass.ts';
import { request } from './request.ts';
import { type AskedSigner, createSigner, generatePrivateKey } from './signer.ts';
import { answering } from './testing/answering.ts';

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

/** As a wallet does it. */
const asked = (onAsked: (text: string) => Promise<string>): AskedSigner => ({
  chain: signer.chain,
  address: signer.address,
  sign: onAsked,
});
const signer = createSigner(generatePrivateKey());

test('a signer that has to be asked signs what one does whose key is at hand', async () => {
  const draft = { type: 'POST', content: { type: 'x' }, timestamp: 1, nonce: 'n' };
  const later = asked(async (text) => signer.sign(text));
  assert.deepEqual(await requestMessage(draft, later), signMessage(draft, signer));
});

test('what its owner refuses to sign is not sent', async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests++;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const refusal = new Error('the owner said no');
    const refusing = asked(() => Promise.reject(refusal));
    const core = new CoreClient({ url, signer: refusing });
    await assert.rejects(core.createProgram({}), refusal);
    await assert.rejects(core.storeFile(new Blob(['x']), 'x', '0'.repeat(64)), refusal);
    await assert.rejects(OwnerPass.create(refusing, { domain: 'node' }), refusal);
    assert.equal(requests, 0);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

test('whatever message a node says that it keeps, it is the one that was signed', async () => {
  const other = 'b'.repeat(64);
  const kept = { item_hash: other, status: 'success' };
  const instance = '/api/v0/instances/a';
  await using node = await answering({
    ...{ '/api/v0/messages': [kept], '/api/v0/programs': [kept], [instance]: [kept] },
    ...{ [`${instance}/control`]: [kept], '/api/v0/instances': [{ ...kept, instance_id: other, ipv6: '' }] },
    '/api/v0/webhooks': [{ webhook_id: other, status: 'success' }],
  });
  const told: unknown[] = [];
  const core = new CoreClient({ url: node.url, signer, onKept: (answer) => void told.push(answer) });
  for (const [what, send] of Object.entries({
    post: () => core.postMessage({ type: 'POST', content: { type: 'x' } }),
    forget: () => core.forget([other]),
    program: () => core.createProgram({}),
    instance: () => core.createInstance({}),
    update: () => core.updateInstance('a', {}),
    control: () => core.controlInstance('a', 'stop'),
    webhook: () => core.registerWebhook({}),
  }))
    await assert.rejects(send(), { code: 'HASH_MISMATCH' }, what);
  assert.deepEqual(told, []);
});

test('what is asked of a compute node or a gateway ends with the signal of the client', async () => {
  const config = {
    version: '1',
    references: { API_SERVER: '' },
    security: {},
    networking: {},
    computing: {},
  };
  const status = { instance_count: 0, route_count: 0, last_sync_time: 0, domain: 'node' };
  await using node = await answering({
    ...{ '/status/config': [{ ...config, DOMAIN_NAME: 'node' }], '/api/status': [status] },
    '/control/machine/a/logs': [[]],
  });
  const stop = new AbortController();
  const { signal } = stop;
  const machine = await MachineClient.open({ url: node.url, nodeId: 'b' }, 'a', signer, { signal });
  const gateway = await GatewayClient.open(node.url, signer, { signal });
  const opened = node.asked.length;
  stop.abort();
  for (const ask of [() => machine.readLogs(1), () => machine.act('stop'), () => gateway.readTraffic('a')])
    await assert.rejects(ask(), { name: 'AbortError' });
  await assert.rejects(GatewayClient.open(node.url, signer, { signal }), { name: 'AbortError' });
  assert.equal(node.asked.length, opened);
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
