import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { createClientOf, createHttpServer, createLogger } from '@skerry/kit';
import { NODE_PROOF_PATH, nodeIdOf, nodeProofUrl, provesNode } from '@skerry/protocol';
import { run } from '../host/run.ts';
import { randomUlaPrefix } from '../publish/identity.ts';
import { addProofRoute } from '../publish/proof.ts';
import { networkNames } from './names.ts';
import { ProofAddress } from './proof-address.ts';

const isRoot = process.platform === 'linux' && process.geteuid?.() === 0;
const log = createLogger('test', 'silent');
const ask = (base: string, challenge: string) => fetch(`${base}${NODE_PROOF_PATH}?challenge=${challenge}`);
const newChallenge = () => randomBytes(32).toString('hex');

function createNode(prefix: string) {
  const signer = createSigner(generatePrivateKey());
  const nodeId = nodeIdOf(signer.address);
  const place = new ProofAddress({
    prefix,
    names: networkNames(nodeId),
    log,
    addRoutes: (app, address) => addProofRoute(app, { signer, nodeId, place: () => address }),
  });
  return { signer, nodeId, place };
}

test('H3: a node holds the address inside its prefix, proves it there, and leaves nothing behind', {
  skip: isRoot ? false : 'needs root on Linux',
}, async () => {
  const prefix = randomUlaPrefix();
  const { signer, nodeId, place } = createNode(prefix);
  const shown = () => run('ip', ['-6', 'address', 'show', 'dev', 'lo']);
  assert.equal(await place.keep(), null);
  assert.equal(await place.keep(), null);
  const challenge = newChallenge();
  const body = await (await ask(nodeProofUrl(prefix), challenge)).bytes();
  const claim = { nodeId, place: place.address, challenge };
  assert.ok(provesNode(body, claim, signer.address));
  assert.ok(!provesNode(body, { ...claim, challenge: newChallenge() }, signer.address));

  // Whatever configures this machine's network took the address away.
  await run('ip', ['-6', 'address', 'delete', `${place.address}/128`, 'dev', 'lo']);
  assert.equal(await place.keep(), null);
  assert.equal((await ask(nodeProofUrl(prefix), challenge)).status, 200);

  // Another node of this machine that has been given the same prefix is told so.
  const other = createNode(prefix);
  const reason = await other.place.keep();
  assert.equal(reason?.code, 'PREFIX_NOT_HELD');
  assert.match(reason.message, /EADDRINUSE/);

  await other.place[Symbol.asyncDispose]();
  assert.ok((await shown()).includes(place.address));
  await place[Symbol.asyncDispose]();
  assert.ok(!(await shown()).includes(place.address));
});

test('H3: a node signs its own place whatever it is asked, and only so often', async () => {
  const signer = createSigner(generatePrivateKey());
  const nodeId = nodeIdOf(signer.address);
  const app = await createHttpServer({ log });
  const clientOf = createClientOf({ trustedProxies: ['127.0.0.1'], exempt: [] });
  addProofRoute(app, { signer, nodeId, place: () => 'https://node.example', clientOf, now: () => 0 });
  const get = (query: string) => app.inject(`${NODE_PROOF_PATH}?${query}`);
  for (const bad of [
    '',
    'challenge=',
    `challenge=${'AB'.repeat(32)}`,
    `challenge=${'ab'.repeat(33)}`,
    'challenge=%0a',
    `challenge=${'ab'.repeat(32)}&place=https%3A%2F%2Fliar.example`,
  ])
    assert.equal((await get(bad)).statusCode, 400, bad);
  const challenge = newChallenge();
  const answer = await get(`challenge=${challenge}`);
  assert.equal(answer.json().place, 'https://node.example');
  const statuses = new Set<number>();
  for (let asked = 0; asked <= 1_300; asked++) statuses.add((await get(`challenge=${challenge}`)).statusCode);
  assert.deepEqual([...statuses], [200, 429]);
  // Behind the operator's proxy each is a client of its own.
  const other = { 'x-forwarded-for': '192.0.2.1' };
  const url = `${NODE_PROOF_PATH}?challenge=${challenge}`;
  assert.equal((await app.inject({ url, headers: other })).statusCode, 200);
  await app.close();
});

test('an address that nobody can listen at does not stay behind', {
  skip: isRoot ? false : 'needs root on Linux',
}, async () => {
  // Of one link: it would need the name of an interface.
  const { place } = createNode('fe80:0:0:5c1::/64');
  assert.equal((await place.keep())?.code, 'PREFIX_NOT_HELD');
  await place[Symbol.asyncDispose]();
  assert.ok(!(await run('ip', ['-6', 'address', 'show', 'dev', 'lo'])).includes(place.address));
});
