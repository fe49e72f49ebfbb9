import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { Health } from './health.ts';
import { probeNode } from './probe.ts';
import type { Node } from './view.ts';

const nodeId = sha256Hex('node');
const never = new AbortController().signal;

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
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

test('a node that answers as itself, or without a name, is in reach', async () => {
  for (const body of [JSON.stringify({ node_hash: nodeId }), '{"node_hash":null}', 'null', 'ok']) {
    await using server = await serve((request, response) => {
      assert.equal(request.url, '/status/config');
      response.end(body);
    });
    assert.equal(await probeNode({ nodeId, url: server.url }, never), undefined, body);
  }
});

test('everything else is out of reach, and says why', async () => {
  let visited = false;
  await using elsewhere = await serve((_request, response) => {
    visited = true;
    response.end('{}');
  });
  const cases: [RequestListener, RegExp][] = [
    [(_, response) => response.writeHead(500).end(), /answered 500/],
    [(_, response) => response.writeHead(302, { location: elsewhere.url }).end(), /answered 302/],
    [(_, response) => response.end(JSON.stringify({ node_hash: sha256Hex('another') })), /another node/],
    [(_, response) => response.end(Buffer.alloc(1024 * 1024)), /more than 65536 bytes/],
    [(request) => request.socket.destroy(), /does not answer/],
    [() => {}, /did not answer in 100 ms/],
    [(_, response) => void response.writeHead(200).write('{'), /did not answer in 100 ms/],
  ];
  for (const [listener, told] of cases) {
    await using server = await serve(listener);
    assert.match((await probeNode({ nodeId, url: server.url }, never, 100)) ?? 'in reach', told);
  }
  assert.ok(!visited, 'a redirect was followed');
  const { url } = elsewhere;
  await elsewhere[Symbol.asyncDispose]();
  assert.match((await probeNode({ nodeId, url }, never)) ?? 'in reach', /ECONNREFUSED/);
});

test('health tells of changes only, and probes a node once at a time', async () => {
  const answers = new Map<string, string | undefined>();
  let probes = 0;
  let changes = 0;
  const health = new Health({
    probe: async ({ nodeId: id }) => {
      probes++;
      return answers.get(id);
    },
    onChange: () => changes++,
    now: () => 7,
    signal: never,
    log: createLogger('test', 'silent'),
  });
  const nodes = Array.from(
    { length: 200 },
    (_, index) => ({ nodeId: sha256Hex(`${index}`), url: '' }) as Node,
  );
  const [first] = nodes as [Node];
  await Promise.all([health.probeAll(nodes), health.probe(first)]);
  assert.deepEqual([probes, changes, health.outages.size], [200, 0, 0]);

  answers.set(first.nodeId, 'no answer');
  await health.probeAll(nodes);
  await health.probeAll(nodes);
  assert.deepEqual(
    [changes, [...health.outages]],
    [1, [[first.nodeId, { sinceMs: 7, failure: 'no answer' }]]],
  );

  answers.delete(first.nodeId);
  await health.probe(first);
  assert.deepEqual([changes, health.outages.size], [2, 0]);

  answers.set(first.nodeId, 'no answer');
  await health.probe(first);
  health.keepOnly(new Map());
  assert.equal(health.outages.size, 0);
});
