import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { NODE_PROOF_PATH } from '@skerry/protocol';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { createHttpLink, type PeerLink } from './link.ts';

const signal = new AbortController().signal;

type Change = (path: string, body: Buffer) => Buffer | undefined;

/** Somebody between a node and another one: passes all on, but for answers that it changes. */
async function startBetween(stack: AsyncDisposableStack, find: (path: string) => string, change: Change) {
  const server = createServer(async (request, response) => {
    const path = request.url!;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = request.method === 'POST' ? Buffer.concat(chunks) : undefined;
    const type = request.headers['content-type'];
    const headers = type === undefined ? {} : { 'content-type': type };
    const answer = await fetch(`${find(path)}${path}`, {
      ...{ method: request.method!, headers },
      ...(body && { body }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(change(path, bytes) ?? bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const viewOf = ({ rooms }: TestCore) => rooms.sync.syncer.view();
const isGreeting = (path: string) => path.endsWith('/sync/status');

/** A node, and the peer that its settings name, which is made once the node has its id. */
async function createNode(stack: AsyncDisposableStack, link: () => PeerLink): Promise<TestCore> {
  const late = new Proxy({} as PeerLink, { get: (_, name: keyof PeerLink) => link()[name] });
  return stack.use(await createTestCore({ peers: [late] }));
}

/** A node and another one that has a message, and somebody between the two. */
async function createPair(stack: AsyncDisposableStack, changeFor: (node: TestCore) => Change) {
  const other = stack.use(await createTestCore());
  await other.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
  const otherUrl = await other.listen();
  const links: { between?: PeerLink } = {};
  const node = await createNode(stack, () => links.between!);
  const change = changeFor(node);
  const nodeUrl = await node.listen();
  return { other, otherUrl, node, nodeUrl, links, change };
}

/** The id that everybody can read. */
const copyId =
  (node: TestCore, lies: () => boolean): Change =>
  (path, body) =>
    isGreeting(path) && lies()
      ? Buffer.from(JSON.stringify({ ...JSON.parse(body.toString()), node_id: viewOf(node).node_id }))
      : undefined;

test('a peer that copies the id of the node is no part of it, and is asked again: what stood between is gone', async () => {
  await using stack = new AsyncDisposableStack();
  let lies = true;
  const pair = await createPair(stack, (node) => copyId(node, () => lies));
  const { node, links } = pair;
  links.between = createHttpLink(await startBetween(stack, () => pair.otherUrl, pair.change));
  const { syncer } = node.rooms.sync;
  assert.equal(await syncer.round(signal), false);
  const { state, peers } = viewOf(node);
  assert.equal(state, 'apart', 'it has a peer');
  assert.deepEqual([peers[0]!.state, peers[0]!.failure], ['failing', 'PEER_MISBEHAVED']);
  assert.ok(peers[0]!.points > 0);
  lies = false;
  assert.ok(await syncer.round(signal));
  assert.equal(viewOf(node).state, 'synced');
  assert.equal(node.rooms.sync.set.index.size, 1);
});

test('nor is one that passes the challenge on to the node, or all that is asked', async () => {
  for (const isPassed of [isGreeting, () => true]) {
    await using stack = new AsyncDisposableStack();
    const pair = await createPair(stack, (node) => copyId(node, () => true));
    const { node, links } = pair;
    const find = (path: string) =>
      isPassed(path) || path.startsWith(NODE_PROOF_PATH) ? pair.nodeUrl : pair.otherUrl;
    links.between = createHttpLink(await startBetween(stack, find, pair.change));
    assert.equal(await node.rooms.sync.syncer.round(signal), false);
    const { state, peers } = viewOf(node);
    assert.equal(state, 'apart');
    assert.deepEqual([peers[0]!.state, peers[0]!.failure], ['failing', 'INVALID_CONFIG']);
    assert.equal(peers[0]!.points, 0, 'it may be an address of the node that its settings do not name');
  }
});

test('a node at its own address is itself, for as long as it answers there', async () => {
  await using stack = new AsyncDisposableStack();
  const places: { url?: string } = {};
  let isAway = false;
  const node = await createNode(stack, () => createHttpLink(isAway ? 'http://127.0.0.1:9' : places.url!));
  places.url = await node.listen();
  const { syncer } = node.rooms.sync;
  assert.ok(await syncer.round(signal));
  assert.deepEqual([viewOf(node).state, viewOf(node).peers[0]!.state], ['alone', 'self']);
  isAway = true;
  assert.equal(await syncer.round(signal), false);
  assert.equal(viewOf(node).state, 'alone', 'silence makes it no other node');
  const other = stack.use(await createTestCore());
  await other.send(signers.alice, { type: 'POST', content: { type: 'note', content: 1 } });
  [isAway, places.url] = [false, await other.listen()];
  assert.ok(await syncer.round(signal));
  assert.deepEqual([viewOf(node).state, node.rooms.sync.set.index.size], ['synced', 1]);
});
