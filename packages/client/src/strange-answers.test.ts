import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { InstanceView, NetworkEvent, NodeContent } from '@skerry/protocol';
import { readAnnouncedNodes } from './compute/announced-nodes.ts';
import { findNodeUrl } from './compute/compute-node.ts';
import { MachineClient, readLogFrame } from './compute/machine-client.ts';
import { readProgramLogs } from './compute/program-logs.ts';
import { CoreClient } from './core-client.ts';
import { watchEvents } from './events.ts';
import { publishMessage } from './network-message.ts';
import { diffNodes } from './node-diff.ts';
import { readAggregate } from './reads/aggregate.ts';
import { recomputeInstancesDigest, recomputeMessagesDigest } from './recompute-digest.ts';
import { createSigner } from './signer.ts';
import { answering } from './testing/answering.ts';

/** Nodes that answer what no contract has, and deployed ones, which answer less than ours. */

const never = new AbortController().signal;
const POSTS = '/api/v0/posts.json';
const INSTANCES = '/api/v0/instances';
const address = (digit: string) => `0x${digit.repeat(40)}`;
const unexpected = { code: 'UNEXPECTED_ANSWER' };

const announcement = (url: string, announced_at_ms = 1): NodeContent => ({
  url,
  ipv6_prefix: '2001:db8::/64',
  capacity: { cpu: 1, memory_mib: 1, disk_gib: 1 },
  features: [],
  version: '1',
  announced_at_ms,
  reason: null,
});
const post = (digit: string, content: unknown) => ({ address: address(digit), content, item_hash: digit });
const pageOf = (posts: readonly unknown[], more: object = {}) => ({ posts, pagination_per_page: 2, ...more });

const INSTANCE: InstanceView = {
  instance_id: 'a'.repeat(64),
  owner: address('1'),
  name: 'web',
  description: '',
  cpu: 1,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ipv6: '',
  status: 'running',
  created_at: 1,
  updated_at: 1,
  ssh_key: '',
  firewall: { allowedPorts: [22] },
  desired: 'running',
  restart_id: null,
  node_id: null,
  node_address: null,
  phase: 'scheduled',
  reason: null,
};

test('announcements: what is none hides no other; pages go on by cursor', async () => {
  await using node = await answering({
    [POSTS]: [
      pageOf([7, { address: 7 }, post('1', announcement('http://one/')), post('2', { url: 'http://two/' })], {
        next_cursor: 'n',
      }),
      pageOf([post('3', null), post('4', announcement('http://four/'))], { next_cursor: null }),
    ],
  });
  const nodes = await readAnnouncedNodes(new CoreClient({ url: node.url }), never);
  assert.deepEqual(
    nodes.map(({ url }) => url),
    ['http://one', 'http://four'],
  );
  assert.match(node.asked[1]!, /cursor=n$/);
});

test('announcements: pages go on by number where the node has no cursors, and end with the list', async () => {
  await using node = await answering({
    [POSTS]: ['1', '2', '3'].map((digit) =>
      pageOf([post(digit, announcement(`http://${digit}/`))], { pagination_total: 5 }),
    ),
  });
  const core = new CoreClient({ url: node.url });
  assert.equal((await readAnnouncedNodes(core, never)).length, 3);
  assert.deepEqual(
    node.asked.map((url) => /(page|cursor)=(.*)$/.exec(url)![0]),
    ['cursor=', 'page=2', 'page=3'],
  );
});

test('announcements: an answer that is no list is refused', async () => {
  for (const answer of [[], {}, { posts: {}, pagination_per_page: 1 }, '<html>', 'null']) {
    await using node = await answering({ [POSTS]: [answer] });
    await assert.rejects(readAnnouncedNodes(new CoreClient({ url: node.url }), never), unexpected);
  }
});

test("a node's URL: a date that no clock may be ahead by has no weight", async () => {
  const list = pageOf([
    { ...post('1', announcement('http://ahead/', 10 ** 15)), time: 1_000 },
    { ...post('1', announcement('http://new/', 1_001_000)), time: 1_001 },
  ]);
  await using node = await answering({ [POSTS]: [list] });
  assert.equal(await findNodeUrl(new CoreClient({ url: node.url }), address('1')), 'http://new');
});

test("a node's URL: its newest announcement counts, and what is none does not, whoever asks", async () => {
  const contents = [
    { ...announcement('http://odd/', 9), capacity: 7 },
    announcement('http://old/', 2),
    announcement('http://new/', 3),
  ];
  const list = pageOf([
    post('2', announcement('http://other/', 9)),
    ...contents.map((one) => post('1', one)),
  ]);
  await using node = await answering({ [POSTS]: [list, { ...list, next_cursor: null }] });
  const core = new CoreClient({ url: node.url });
  assert.equal(await findNodeUrl(core, address('1')), 'http://new');
  const all = await readAnnouncedNodes(core, never);
  assert.deepEqual(
    all.map(({ url }) => url),
    ['http://other', 'http://new'],
  );
  for (const asked of node.asked) assert.match(asked, /channels=net-compute&types=net-node/);
  await using empty = await answering({ [POSTS]: [pageOf([{}])] });
  await assert.rejects(findNodeUrl(new CoreClient({ url: empty.url }), address('1')), {
    code: 'NODE_NOT_FOUND',
  });
});

test('instances: one in another form is told beside the others', async () => {
  const pagination = { total: 3, page: 1, per_page: 100, total_pages: 1 };
  const odd = { ...INSTANCE, instance_id: 'b'.repeat(64), cpu: 'many' };
  const newer = { ...INSTANCE, colour: 'red', firewall: { allowedPorts: [22], colour: 'red' } };
  const answer = { instances: [odd, newer, null], pagination, next_cursor: null, cursor: '5' };
  await using node = await answering({ [INSTANCES]: [answer] });
  const { instances, unreadable, cursor } = await new CoreClient({ url: node.url }).readAllInstances();
  assert.deepEqual(instances, [newer]);
  assert.equal(cursor, '5');
  assert.deepEqual(
    unreadable.map(({ instanceId, error }) => [instanceId, error.code]),
    [
      ['b'.repeat(64), 'UNEXPECTED_ANSWER'],
      [undefined, 'UNEXPECTED_ANSWER'],
    ],
  );
  await using broken = await answering({ [INSTANCES]: [{ ...answer, cursor: 5 }] });
  await assert.rejects(new CoreClient({ url: broken.url }).readAllInstances(), unexpected);
});

test('instances: a page goes on where the one before ended, whatever was forgotten between them', async () => {
  const pagination = { total: 2, page: 1, per_page: 1, total_pages: 2 };
  const last = { ...INSTANCE, instance_id: 'b'.repeat(64) };
  const pages = [
    { instances: [INSTANCE], pagination, next_cursor: 'n', cursor: '5' },
    { instances: [last], pagination, next_cursor: null, cursor: '6' },
  ];
  await using node = await answering({ [INSTANCES]: pages });
  const list = await new CoreClient({ url: node.url }).readAllInstances({ status: 'running' });
  assert.deepEqual(list, { instances: [INSTANCE, last], unreadable: [], cursor: '5' });
  assert.deepEqual(node.asked, [
    `${INSTANCES}?status=running&limit=100`,
    `${INSTANCES}?status=running&cursor=n&limit=100`,
  ]);
});

test('an aggregate: as every node of the network answers it, or refused', async () => {
  const owner = address('1');
  const path = `/api/v0/aggregates/${owner}.json`;
  const answers = [
    { address: owner, data: { k: [1] } },
    { address: owner, data: {} },
  ];
  await using node = await answering({ [path]: answers });
  assert.deepEqual(await readAggregate(node.url, owner, 'k'), [1]);
  assert.equal(await readAggregate(node.url, owner, 'k'), undefined);
  for (const answer of [{ k: [1] }, { address: owner, data: [] }, { address: owner }, '[]', 'no']) {
    await using odd = await answering({ [path]: [answer] });
    await assert.rejects(readAggregate(odd.url, owner, 'k'), unexpected);
  }
});

test('nothing is signed for a time to come, whatever a node says of the last change', async () => {
  const owner = createSigner(`0x${'1'.repeat(64)}`);
  const aggregate = `/api/v0/aggregates/${owner.address}.json`;
  const last = (aheadSeconds: number) => Math.floor(Date.now() / 1000) + aheadSeconds;
  const infoOf = (seconds: number) => ({ k: { last_updated: new Date(seconds * 1000).toISOString() } });
  await using node = await answering({
    [aggregate]: [86_400, 700].map((ahead) => ({
      ...{ address: owner.address, data: {} },
      info: infoOf(last(ahead)),
    })),
    [POSTS]: [pageOf([{ ...post('1', {}), time: 1e300 }])],
  });
  const signed: string[] = [];
  const sign = (text: string) => {
    signed.push(text);
    return owner.sign(text);
  };
  const core = new CoreClient({ url: node.url, signer: { ...owner, sign } });
  const later = { code: 'TIMESTAMP_IN_FUTURE' };
  const change = { type: 'AGGREGATE', content: { key: 'k', content: {} } };
  for (const draft of [change, change, { type: 'POST', content: { type: 'amend', ref: 'a', content: {} } }])
    await assert.rejects(core.postMessage(draft), later);
  await assert.rejects(core.controlInstance('a', 'stop', last(86_400)), later);
  assert.deepEqual(signed, []);
  // As by somebody's clock that is a little fast; this node stores nothing.
  await assert.rejects(core.updateInstance('a', { name: 'b' }, last(200)), { code: 'UPSTREAM_UNAVAILABLE' });
  assert.ok(JSON.parse(signed[0]!).timestamp > last(190));
});

test('what an owner asks of a node is signed for that node, whichever one it says that it is', async () => {
  const owner = createSigner(`0x${'1'.repeat(64)}`);
  const [meant, other, program] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [
    string,
    string,
    string,
  ];
  const config = {
    ...{ DOMAIN_NAME: 'other.example', version: '1', references: { API_SERVER: '' } },
    ...{ security: {}, networking: {}, computing: {} },
  };
  for (const said of [{ node_hash: other }, { node_hash: meant }, {}]) {
    await using node = await answering({
      '/status/config': [{ ...config, ...said }],
      [`/control/machine/${program}/logs`]: [[]],
    });
    const runner = { url: `${node.url}/`, node_id: meant, node_address: address('1') };
    const [log] = await readProgramLogs({ listProgramRunners: async () => [runner] }, program, owner, 1);
    if (said.node_hash === other) {
      assert.deepEqual([log!.failure?.code, node.asked], ['UNEXPECTED_ANSWER', ['/status/config']]);
      continue;
    }
    assert.deepEqual(log!.lines, []);
    const { payload } = JSON.parse(String(node.headers[1]!['x-signedoperation']));
    assert.equal(JSON.parse(String(Buffer.from(payload, 'hex'))).node, meant);
  }
});

test('a message is published to deployed nodes, which do not say its hash', async () => {
  const path = '/api/v0/messages';
  const answer = { publication_status: { status: 'success', failed: [] }, message_status: 'pending' };
  await using node = await answering({ [path]: [answer] });
  await publishMessage(node.url, '{}');
  for (const answer of [{}, { item_hash: 'a', status: 'success' }, '<html>']) {
    await using odd = await answering({ [path]: [answer] });
    await assert.rejects(publishMessage(odd.url, '{}'), unexpected);
  }
});

test('events: one in another form is told and left out, one of a newer kind is left out, and the next ones count', async () => {
  const told = [
    { cursor: '1', kind: 'instance', time_ms: 1, data: { instance_id: 7 } },
    { cursor: '2', kind: 'colour', time_ms: 1, data: 'red' },
    { cursor: '3', kind: 'instance', time_ms: 1, data: INSTANCE },
  ];
  const frames = told.map((event) => `id: ${event.cursor}\ndata: ${JSON.stringify(event)}\n\n`);
  await using node = await answering({ '/api/v0/events': [frames.join(''), 'data: {"cursor":7}\n\n'] });
  const stop = new AbortController();
  const unreadable: string[] = [];
  const failures: unknown[] = [];
  const events: NetworkEvent[] = [];
  const options = {
    signal: stop.signal,
    onUnreadable: (kind: string, { code }: { code: string }) => void unreadable.push(`${kind} ${code}`),
    onDisconnect: (error: unknown) => {
      // What is no event at all ends the connection: it is another kind of server.
      if (failures.push(error) === 2) stop.abort();
    },
  };
  for await (const event of watchEvents(node.url, options)) events.push(event);
  assert.deepEqual(events, [told[2]]);
  assert.deepEqual(unreadable, ['instance UNEXPECTED_ANSWER']);
  assert.equal((failures[1] as { code: string }).code, 'UNEXPECTED_ANSWER');
  assert.match(node.asked[1]!, /cursor=3$/);
});

test('events from the newest on: a connection that breaks off before one came is taken up where it began, in any browser', async () => {
  await using node = await answering({ '/api/v0/events': [': skerry events\nid: 7\n\n'] });
  const stop = new AbortController();
  const retries: number[] = [];
  const onDisconnect = (_error: unknown, retryMs: number) => {
    if (retries.push(retryMs) === 2) stop.abort();
  };
  // Not every browser can iterate over a stream.
  const iterate = Object.getOwnPropertyDescriptor(ReadableStream.prototype, Symbol.asyncIterator)!;
  Reflect.deleteProperty(ReadableStream.prototype, Symbol.asyncIterator);
  try {
    const events = watchEvents(node.url, { cursor: 'latest', signal: stop.signal, onDisconnect });
    assert.ok((await events.next()).done);
  } finally {
    Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, iterate);
  }
  assert.deepEqual(
    node.asked.map((path) => new URL(path, node.url).searchParams.get('cursor')),
    ['latest', '7'],
  );
  assert.ok(retries[1]! > retries[0]!, 'who is let in and sent away again rests longer');
});

test('of an answer that is too long no more is read than any answer has', async () => {
  let sent = 0;
  const server = createServer((_request, response) => {
    const part = Buffer.alloc(1024 ** 2);
    const send = () => {
      while (sent < 64 * part.length && !response.destroyed) {
        sent += part.length;
        if (!response.write(part)) return void response.once('drain', send);
      }
      response.end();
    };
    send();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await assert.rejects(diffNodes(url, url), unexpected);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  assert.ok(sent < 32 * 1024 ** 2, `${sent} bytes were sent`);
});

test('lists without an end are read no farther than they may be long', async () => {
  const row = { item_hash: 'a'.repeat(64), status: 'processed', reception_time: new Date(0).toISOString() };
  const hashes = Array(10_000).fill(row);
  const page = { pagination_per_page: 10_000, pagination_page: 1, pagination_total: 1 };
  const digest = { cursor: '0', count: 1, digest: '0'.repeat(64) };
  const list = {
    instances: [],
    pagination: { total: 1, page: 1, per_page: 100, total_pages: 1 },
    cursor: '0',
  };
  await using node = await answering({
    '/api/v0/state/digest/messages': [digest],
    '/api/v0/state/digest/instances': [digest],
    '/api/v0/messages/hashes': [JSON.stringify({ hashes, pagination_item: 'hashes', ...page })],
    [INSTANCES]: [{ ...list, next_cursor: 'n' }],
  });
  const [source, options] = [{ coreUrl: node.url }, { max: 20_000 }];
  assert.equal((await recomputeMessagesDigest(source, options)).isCut, true);
  assert.equal(node.asked.length, 4);
  assert.equal((await recomputeInstancesDigest(source, new Set(), { max: 10 })).isCut, true);
  assert.equal(node.asked.length, 4 + 1 + 11);
});

test('what is no comparison of nodes, and no line of a log, is refused', async () => {
  await using node = await answering({ '/api/v0/sync/ranges': ['<html>'] });
  await assert.rejects(diffNodes(node.url, node.url), unexpected);
  assert.deepEqual(readLogFrame('{"type":"stdout","message":"a"}'), { type: 'stdout', message: 'a' });
  for (const text of ['', 'null', '{"message":7}']) assert.throws(() => readLogFrame(text), unexpected);
});

test('the link of a backup leads to its node, and nowhere else', async () => {
  const signer = createSigner(`0x${'1'.repeat(64)}`);
  const nodeId = 'b'.repeat(64);
  const config = {
    ...{ DOMAIN_NAME: 'node.test', version: '1', references: { API_SERVER: '' } },
    ...{ security: {}, networking: {}, computing: {} },
  };
  await using node = await answering({ '/status/config': [config], '/backups/1': ['bytes'] });
  const machine = await MachineClient.open({ url: node.url, nodeId }, 'a'.repeat(64), signer);
  const backup = {
    ...{ backup_id: '1', reason: null, size: 5, checksum: null, volumes: [] },
    state: 'done',
    ...{ created_at: new Date(0).toISOString(), expires_at: new Date(0).toISOString() },
  } as const;
  const fetchBy = (download_url: string | null) => machine.fetchBackup({ ...backup, download_url });
  assert.equal(await (await fetchBy('/backups/1')).text(), 'bytes');
  for (const link of ['@127.0.0.1:9/x', '.example.org/x', ':9/x', '', null])
    await assert.rejects(fetchBy(link), unexpected, String(link));
});

test('an answer that breaks off is told as one, and an event without an end is not waited for', async () => {
  let sent = 0;
  const server = createServer(({ url: path = '' }, response) => {
    if (!path.includes('/events')) {
      response.writeHead(200, { 'content-length': '9' }).write('cut');
      setImmediate(() => response.destroy());
      return;
    }
    const part = Buffer.alloc(1024 ** 2, 'x');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ');
    const send = () => {
      while (!response.destroyed && sent < 64 * part.length) {
        sent += part.length;
        if (!response.write(part)) return void response.once('drain', send);
      }
    };
    send();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const broken = { code: 'UPSTREAM_UNAVAILABLE', message: /broke its answer off/ };
    await assert.rejects(readAggregate(url, address('1'), 'key'), broken);
    const stop = new AbortController();
    const failures: unknown[] = [];
    const onDisconnect = (error: unknown) => {
      failures.push(error);
      stop.abort();
    };
    for await (const _ of watchEvents(url, { signal: stop.signal, onDisconnect }));
    assert.equal((failures[0] as { code: string }).code, 'UNEXPECTED_ANSWER');
    assert.ok(sent < 48 * 1024 ** 2, `${sent} bytes were sent`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
