import assert from 'node:assert/strict';
import { get } from 'node:http';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { createNodeProof, NODE_PROOF_PATH, nodeIdOf, nodeProofAddress, parseNodeUrl } from '@skerry/protocol';
import type { MeasuredNode } from '../node-list.ts';
import { type Handler, probeOptionsOf, startNode } from '../testing/scene.ts';
import { measureNode } from './measure.ts';

const [owner, thief] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];
const announced = ({ address }: typeof owner, url: string): MeasuredNode => ({
  kind: 'compute',
  nodeId: nodeIdOf(address),
  url,
  address,
});

const POOL = 'fd00:1:2:3::/64';

/** A compute node with this key. @param place where it says it is; undefined where it is from before proofs */
const nodeOf =
  (signer: typeof owner, place: (port: number) => string | undefined): Handler =>
  (request, response) => {
    const url = new URL(request.url ?? '', 'http://here');
    const at = place(request.socket.localPort!);
    const nodeId = nodeIdOf(signer.address);
    if (url.pathname === NODE_PROOF_PATH && at !== undefined) {
      const claim = { nodeId, place: parseNodeUrl(at), challenge: url.searchParams.get('challenge')! };
      response.end(JSON.stringify(createNodeProof(claim, signer.sign)));
    } else if (url.pathname === NODE_PROOF_PATH) response.writeHead(404).end('{}');
    else if (url.pathname === '/about/login') response.writeHead(401).end('{}');
    else if (url.pathname === '/status/config')
      response.end(JSON.stringify({ node_hash: nodeId, networking: { IPV6_ADDRESS_POOL: POOL } }));
    else response.end('{}');
  };
const proving = nodeOf(owner, (port) => `http://127.0.0.1:${port}/`);
const old = nodeOf(owner, () => undefined);

async function isMeasured(handler: Handler, who: typeof owner): Promise<boolean> {
  await using node = await startNode(handler);
  const record = await measureNode(announced(who, node.url), probeOptionsOf());
  const fields = ['base_latency', 'base_latency_ipv4', 'diagnostic_vm_latency', 'config_node_hash', 'ipv4'];
  const has = fields.filter((field) => record[field] !== undefined);
  assert.ok(has.length === 0 || has.length === fields.length, has.join());
  return has.length > 0;
}

test('H3: hours are earned by the key that answers at the URL', async () => {
  assert.ok(await isMeasured(proving, owner));
  // Who announced another's URL.
  assert.equal(await isMeasured(proving, thief), false);
  // A proof for another place, and one that is none.
  const elsewhere = nodeOf(owner, () => 'http://elsewhere.test/');
  assert.equal(await isMeasured(elsewhere, owner), false);
  assert.equal(await isMeasured((_request, response) => response.end('{}'), owner), false);
});

test('H3: who passes the questions on to another’s node is not measured', async () => {
  await using real = await startNode(proving);
  const relay: Handler = (request, response) => {
    get(`${real.url.replace(/\/$/, '')}${request.url}`, (answer) => {
      response.writeHead(answer.statusCode!);
      answer.pipe(response);
    });
  };
  for (const who of [thief, owner]) assert.equal(await isMeasured(relay, who), false);
});

test('H3: a node from before proofs is measured as itself only', async () => {
  assert.ok(await isMeasured(old, owner));
  assert.equal(await isMeasured(old, thief), false);
});

test('the autonomous system of an announced node is that of an address at which its key answered', async () => {
  const AS: Readonly<Record<string, number>> = { '127.0.0.1': 64_496, '::1': 64_497 };
  const findSystem = (address: string) => ({ asn: AS[address]!, name: null });
  const systemOf = async (url: string, own: Parameters<typeof probeOptionsOf>[0] = {}) =>
    (await measureNode(announced(owner, url), probeOptionsOf({ findSystem, ...own }))).asn;
  await using there = await startNode(proving);
  assert.equal(await systemOf(there.url), AS['127.0.0.1']);
  // A name that leads to another's network once the proof is given.
  let isProved = false;
  const honest = nodeOf(owner, (port) => `http://localhost:${port}/`);
  const handler: Handler = (request, response) => {
    isProved = true;
    honest(request, response);
  };
  await using own = await startNode(handler, { host: '::1' });
  const mayReach = (address: string) => address === (isProved ? '127.0.0.1' : '::1');
  assert.equal(await systemOf(`http://localhost:${own.port}/`, { mayReach }), AS['::1']);
  assert.ok(isProved);
  // Anybody's server has no proofs.
  await using other = await startNode(old);
  assert.equal(await systemOf(other.url), undefined);
});

test('M6: a node that does not answer is asked nothing else', async () => {
  await using node = await startNode((request) => request.socket.destroy());
  const record = await measureNode(announced(owner, node.url), probeOptionsOf());
  assert.deepEqual(record.codes, [2003, 2004, 2005, 2006, 2007]);
  assert.ok(node.requests.every(({ path }) => path.startsWith(NODE_PROOF_PATH)));
});

test('H3: which address and which network a node proves stands in its record', async () => {
  const placeOf =
    (signer: typeof owner): Handler =>
    (request, response) => {
      const challenge = new URL(request.url!, 'http://here').searchParams.get('challenge')!;
      const claim = { nodeId: nodeIdOf(owner.address), place: nodeProofAddress(POOL), challenge };
      response.end(JSON.stringify(createNodeProof(claim, signer.sign)));
    };
  await using own = await startNode(placeOf(owner), { host: '::1' });
  await using other = await startNode(placeOf(thief), { host: '::1' });
  const provedBy = async (handler: Handler, proofUrl: string) => {
    await using node = await startNode(handler);
    const options = probeOptionsOf({ proofUrlOf: () => proofUrl.replace(/\/$/, '') });
    const record = await measureNode(announced(owner, node.url), options);
    assert.deepEqual([record.ipv4, record.ipv6_pool], ['127.0.0.1', POOL]);
    return [record.ipv4_proved, record.ipv6_pool_proved];
  };
  assert.deepEqual(await provedBy(proving, own.url), [true, true]);
  assert.deepEqual(await provedBy(proving, other.url), [true, undefined]);
  // A name that leads to another's server after the first answer.
  const foreign = nodeOf(thief, (port) => `http://127.0.0.1:${port}/`);
  let proofs = 0;
  const moving: Handler = (request, response) => {
    const isProof = request.url!.startsWith(NODE_PROOF_PATH);
    (isProof && ++proofs > 1 ? foreign : proving)(request, response);
  };
  assert.deepEqual(await provedBy(moving, own.url), [undefined, true]);
  assert.deepEqual(await provedBy(old, 'http://[::1]:1'), [undefined, undefined]);
});
