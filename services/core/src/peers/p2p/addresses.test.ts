import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createTestCore, signers } from '../../testing/core.ts';
import { keepConnected, ListedNodes, listAddresses } from './addresses.ts';

const { alice } = signers;
const MULTIADDRESS = '/ip4/192.0.2.1/tcp/4025/p2p/12D3KooWGRUtestabc';
const signal = new AbortController().signal;

/** A core node that says of itself where it gossips; `undefined`: it says nothing. */
async function createTeller(t: { after(end: () => void): void }) {
  type Told = string | string[] | ((url: string) => string[]) | undefined;
  const teller: { told: Told; asked: number; url: string } = {
    told: '',
    asked: 0,
    url: '',
  };
  const server = createServer(({ url = '' }, response) => {
    const { told } = teller;
    teller.asked++;
    const addresses = typeof told === 'function' ? told(url) : [told].flat();
    if (told === undefined) response.destroy();
    else response.end(JSON.stringify({ node_multi_addresses: addresses }));
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  t.after(() => server.closeAllConnections());
  await once(server, 'listening');
  teller.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return teller;
}

test('a list of nodes that says where they answer over HTTP, as monitors write it, has them asked where they gossip', async (t) => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  const teller = await createTeller(t);
  teller.told = '/ip4/192.0.2.2/tcp/4025/p2p/12D3KooWGRUtestdef';
  const nodes = [
    { hash: '1'.repeat(64), address: teller.url },
    { hash: '2'.repeat(64), multiaddress: MULTIADDRESS, address: 'http://127.0.0.1:1/' },
    { hash: '3'.repeat(64), address: 'no URL' },
    null,
    7,
  ];
  const content = { key: 'corechannel', content: { nodes } };
  assert.equal((await core.send(alice, { type: 'AGGREGATE', content })).status, 200);
  let uptime = 0;
  const find = (listed: ListedNodes) =>
    listAddresses({ db, peers: [], nodeListOwner: alice.address, listed, random: () => 0 }, signal);
  const listed = new ListedNodes(true, () => uptime);
  assert.deepEqual(await find(listed), [teller.told, MULTIADDRESS]);
  // Its word counts for a while, also where it says nothing then.
  const { told } = teller;
  teller.told = undefined;
  await find(listed);
  assert.equal(teller.asked, 1);
  uptime += 600_000;
  assert.deepEqual(await find(listed), [told, MULTIADDRESS]);
  assert.equal(teller.asked, 2);
  // Anybody may have announced a place within somebody's network.
  assert.deepEqual(await find(new ListedNodes(false)), [MULTIADDRESS]);
  assert.equal(teller.asked, 2);
});

test('of a long list a few nodes are asked at a time, and each has its turn', async (t) => {
  const teller = await createTeller(t);
  const urls = Array.from({ length: 20 }, (_, at) => `${teller.url}${at}`);
  const listed = new ListedNodes(true, () => 0);
  const counts: number[] = [];
  for (let look = 0; look < 4; look++) {
    await listed.addressesOf(urls, signal);
    counts.push(teller.asked);
  }
  assert.deepEqual(counts, [8, 16, 20, 20]);
});

const addressOf = (node: number, at: number) => `/ip4/192.0.2.${node}/tcp/${at + 1}/p2p/12D3KooWGRUtestdef`;
/** The first addresses of a node. */
const of = (node: number, count: number) => Array.from({ length: count }, (_, at) => addressOf(node, at));

test('a listed node has a few addresses, however many it says, and each node its first before a second of any', async (t) => {
  await using core = await createTestCore();
  const [greedy, modest] = [await createTeller(t), await createTeller(t)];
  greedy.told = of(1, 1_000);
  modest.told = of(2, 1);
  const nodes = [{ address: greedy.url }, { address: modest.url }];
  const content = { key: 'corechannel', content: { nodes } };
  assert.equal((await core.send(alice, { type: 'AGGREGATE', content })).status, 200);
  const sources = {
    db: core.rooms.db,
    peers: [],
    nodeListOwner: alice.address,
    listed: new ListedNodes(true),
    random: () => 0,
  };
  const [first, ...others] = of(1, 8);
  assert.deepEqual(await listAddresses(sources, signal), [first, ...of(2, 1), ...others]);
});

test('where there are too many addresses, the nodes that are last in the list have theirs', async (t) => {
  await using core = await createTestCore();
  const teller = await createTeller(t);
  teller.told = (url) => of(Number(url.split('/')[1]), 8);
  // As many as fill all places, eight for each, and a few more.
  const urls = Array.from({ length: 130 }, (_, at) => `${teller.url}${at}`);
  const content = { key: 'corechannel', content: { nodes: urls.map((address) => ({ address })) } };
  assert.equal((await core.send(alice, { type: 'AGGREGATE', content })).status, 200);
  const sources = {
    ...{ db: core.rooms.db, peers: [], nodeListOwner: alice.address },
    listed: new ListedNodes(true, () => 0),
  };
  for (let look = 0; look < urls.length / 8; look++) await listAddresses(sources, signal);
  const found = await listAddresses(sources, signal);
  assert.equal(found.length, 1_000);
  assert.ok(urls.every((_, node) => found.includes(addressOf(node, 0))));
});

test('of more nodes than are kept the last have their turn: each time it begins at another place of the list', async (t) => {
  await using core = await createTestCore();
  const teller = await createTeller(t);
  const told = addressOf(1, 0);
  teller.told = told;
  const listed = Array.from({ length: 1_100 }, (_, at) => `/ip4/192.0.2.2/tcp/${at + 1}/p2p/node${at}`);
  const nodes = [...listed.map((multiaddress) => ({ multiaddress })), { address: teller.url }];
  const content = { key: 'corechannel', content: { nodes } };
  assert.equal((await core.send(alice, { type: 'AGGREGATE', content })).status, 200);
  let random = 0;
  const sources = {
    ...{ db: core.rooms.db, peers: [MULTIADDRESS], nodeListOwner: alice.address },
    ...{ listed: new ListedNodes(true), random: () => random },
  };
  assert.deepEqual(await listAddresses(sources, signal), [MULTIADDRESS, ...listed.slice(0, 999)]);
  random = 0.5;
  const found = await listAddresses(sources, signal);
  assert.equal(found.length, 1_000);
  assert.deepEqual(found.slice(0, 553), [MULTIADDRESS, ...listed.slice(550), told, listed[0]]);
});

test('all nodes of a list that is too long are asked, and the word of those who were asked longest ago is dropped', async (t) => {
  const teller = await createTeller(t);
  teller.told = MULTIADDRESS;
  const urls = Array.from({ length: 1_008 }, (_, at) => `${teller.url}${at}`);
  const listed = new ListedNodes(true, () => 0);
  for (let look = 1; look < urls.length / 8; look++) await listed.addressesOf(urls, signal);
  const found = await listed.addressesOf(urls, signal);
  assert.equal(teller.asked, urls.length);
  assert.deepEqual(
    found,
    urls.map((_, at) => (at < 8 ? [] : [MULTIADDRESS])),
  );
});

const at = (peer: string, port: number) => `/ip4/192.0.2.1/tcp/${port}/p2p/${peer}`;
/** Addresses of other nodes, as many as are kept. */
const many = Array.from({ length: 1_000 }, (_, peer) => at(`${peer}`, 1));

test('a node that is connected is known as long as it is, by one address, before all others', () => {
  const before = [at('left', 1), at('stays', 1), at('stays', 2), at('named', 1)];
  const connected = new Set(['stays', 'named', 'stranger']);
  const known = keepConnected([at('new', 1), at('named', 2)], before, connected);
  assert.deepEqual(known, [at('named', 2), at('stays', 1), at('new', 1)]);
  assert.deepEqual(keepConnected(many, before, new Set(['stays'])), [at('stays', 1), ...many.slice(0, 999)]);
  assert.deepEqual(keepConnected([at('new', 1)], known, new Set()), [at('new', 1)]);
});

test('connected nodes that are named in the last places are not cut off for those that are not named', () => {
  const connected = new Set(['stays', '998', '999']);
  const known = keepConnected(many, [at('stays', 1)], connected);
  assert.deepEqual(known, [at('998', 1), at('999', 1), at('stays', 1), ...many.slice(0, 997)]);
});

test('what others say of a connected node does not take the place of its own address', () => {
  const connected = new Set(['victim']);
  const named = [at('liar', 1), at('victim', 1), at('victim', 666)];
  const known = keepConnected(named, [], connected);
  assert.deepEqual(known, [at('victim', 1), at('liar', 1), at('victim', 666)]);
  assert.deepEqual(keepConnected([at('liar', 1)], known, connected), [at('victim', 1), at('liar', 1)]);
});
