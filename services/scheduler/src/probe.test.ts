import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { test } from 'node:test';
import { createAsker, createLogger, createReach, type Logger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { Health } from './health.ts';
import { nodeAt, size } from './planning/testing/setup.ts';
import { type Findings, probeNode } from './probe.ts';
import { createKey, nodeServer, serve } from './testing/nodes.ts';

const never = new AbortController().signal;
const asker = createAsker({ mayReach: createReach(true) });
/** Only what hangs takes as long. */
const HANG_MS = 60_000;
const told = { asker, signal: never, isTold: true, timeoutMs: HANG_MS };
const PROVED: Findings = { key: null, prefix: null };

test('a node whose key answers at its URL is in reach', async () => {
  const key = createKey(1);
  await using server = await serve(nodeServer(key));
  assert.deepEqual(await probeNode({ ...key, url: server.url, ipv6Prefix: null }, true, told), {
    key: null,
    prefix: undefined,
  });
});

test('everything else is out of reach, and says why where the operator listed it', async () => {
  let visited = false;
  const key = createKey(1);
  await using elsewhere = await serve((_request, response) => {
    visited = true;
    response.end('{}');
  });
  const config = JSON.stringify({ node_hash: key.nodeId });
  const cases: [RequestListener, RegExp, boolean][] = [
    [(_, response) => response.writeHead(500).end(), /returned 500/, true],
    [(_, response) => response.writeHead(404).end(config), /returned 404/, true],
    [(_, response) => response.writeHead(429).end(), /returned 429/, false],
    // A node from before proofs is there, though nothing new is placed on it.
    [
      (request, response) => response.writeHead(request.url === '/status/config' ? 200 : 404).end(config),
      /returned 404/,
      false,
    ],
    [(_, response) => response.writeHead(302, { location: elsewhere.url }).end(), /returned 302/, true],
    [(_, response) => response.end(config), /does not prove/, true],
    [nodeServer(createKey(2)), /does not prove/, true],
    [(_, response) => response.end(Buffer.alloc(1024 * 1024)), /larger than 8192 bytes/, true],
    [(request) => request.socket.destroy(), /does not answer/, true],
    [() => {}, /no answer within 100 ms/, true],
    [(_, response) => void response.writeHead(200).write('{'), /no answer within 100 ms/, true],
  ];
  for (const [listener, message, isSilent] of cases) {
    await using server = await serve(listener);
    const node = { ...key, url: server.url, ipv6Prefix: null };
    const isEndless = message.test('no answer within 100 ms');
    const found = await probeNode(node, false, isEndless ? { ...told, timeoutMs: 100 } : told);
    assert.match(found.key?.message ?? 'in reach', message);
    assert.equal(found.key?.isSilent, isSilent, String(message));
  }
  assert.ok(!visited, 'a redirect was followed');
  const node = { ...key, url: elsewhere.url, ipv6Prefix: null };
  await elsewhere[Symbol.asyncDispose]();
  assert.match((await probeNode(node, false, told)).key?.message ?? 'in reach', /ECONNREFUSED/);
});

function createHealth(answer: (nodeId: string) => Findings | undefined, isListed = true) {
  const seen = { probes: 0, changes: 0, nowMs: 7, warnings: 0 };
  const health = new Health({
    probe: async ({ nodeId }) => {
      seen.probes++;
      return answer(nodeId) ?? PROVED;
    },
    isAsked: () => true,
    isListed: () => isListed,
    asksPrefix: () => true,
    onChange: () => seen.changes++,
    now: () => seen.nowMs,
    uptime: () => seen.nowMs,
    signal: never,
    againMs: 0,
    log: { debug() {}, info() {}, warn: () => seen.warnings++ } as unknown as Logger,
  });
  return { health, seen };
}

test('a node that changes its network again and again has its instances told ever more rarely', async () => {
  const { health, seen } = createHealth(() => undefined, false);
  const node = nodeAt(1, size(1, 1, 1));
  const prefixes = ['2001:db8:1::/64', '2001:db8:2::/64'];
  let [moves, prefix] = [0, null as string | null];
  for (const endMs = 24 * 3_600_000; seen.nowMs < endMs; seen.nowMs += 5_000) {
    const other = { ...node, ipv6Prefix: prefixes.find((one) => one !== prefix)! };
    await health.probe(other);
    const proof = health.proofOf(other);
    if (proof.prefix === prefix) assert.match(proof.prefixFault ?? '', /a short while ago/);
    else if (++moves <= 2) assert.equal(seen.nowMs, 7 + (moves - 1) * 5_000, 'the first ones at once');
    prefix = proof.prefix;
  }
  assert.ok(moves < 50, `${moves} times`);
});

test('health tells of changes only, and probes a node once at a time', async () => {
  const answers = new Map<string, Findings>();
  const { health, seen } = createHealth((nodeId) => answers.get(nodeId));
  const nodes = Array.from({ length: 200 }, (_, index) => nodeAt(index, size(1, 1, 1)));
  const [first] = nodes;
  await Promise.all([health.probeAll(nodes), health.probe(first!)]);
  assert.deepEqual([seen.probes, seen.changes], [200, 200]);
  assert.deepEqual(health.proofOf(first!), {
    isKeyProved: true,
    prefix: first!.ipv6Prefix,
    prefixFault: null,
  });

  answers.set(first!.nodeId, { key: { message: 'no answer', isSilent: true }, prefix: undefined });
  await health.probeAll(nodes);
  await health.probeAll(nodes);
  assert.equal(seen.changes, 201);
  assert.deepEqual(health.outageOf(first!.nodeId), {
    ...{ sinceMs: 7, lastedMs: 0, failure: 'no answer', isSilent: true },
  });

  answers.delete(first!.nodeId);
  await health.probe(first!);
  assert.deepEqual([seen.changes, health.outageOf(first!.nodeId)], [202, undefined]);

  health.keepOnly(() => false);
  assert.equal(health.proofOf(first!).isKeyProved, false);
});

test('H3: who announces nodes that prove nothing writes no lines of the log', async () => {
  const node = nodeAt(1, size(1, 1, 1));
  const silent: Findings = { key: { message: 'no answer', isSilent: true }, prefix: undefined };
  const warningsOf = async (isListed: boolean, ...found: Findings[]) => {
    let findings = PROVED;
    const { health, seen } = createHealth(() => findings, isListed);
    for (findings of found) await health.probe(node);
    const early = seen.warnings;
    // One that is not up yet as the scheduler starts is no outage; one that is still not there is told once.
    seen.nowMs += 60_000;
    for (let again = 0; again < 2; again++) await health.probe(node);
    return [early, seen.warnings];
  };
  assert.deepEqual(await warningsOf(false, silent), [0, 0]);
  assert.deepEqual(await warningsOf(true, silent), [0, 1], 'the operator hears of a node that is listed');
  assert.deepEqual(await warningsOf(false, PROVED, silent), [1, 1], 'and of one that was there');
});

test('one answer that is lost says nothing of a node that was there, or that the operator lists', async () => {
  const node = nodeAt(1, size(1, 1, 1));
  const lost: Findings = { key: { message: 'no answer', isSilent: true }, prefix: undefined };
  const outageAfter = async (isListed: boolean, ...found: Findings[]) => {
    const { health, seen } = createHealth(() => found.shift() ?? PROVED, isListed);
    while (found.length > 0) await health.probe(node);
    return [health.outageOf(node.nodeId)?.failure, seen.changes];
  };
  assert.deepEqual(await outageAfter(true, lost), [undefined, 1]);
  assert.deepEqual(await outageAfter(true, lost, lost), ['no answer', 1]);
  assert.deepEqual(await outageAfter(false, PROVED, lost), [undefined, 1]);
  assert.deepEqual(await outageAfter(false, PROVED, lost, lost), ['no answer', 2]);
  assert.deepEqual(await outageAfter(false, lost), ['no answer', 1], 'a stranger is asked once');
});

test('a node that says that it moved while it is asked is asked again where it is', async () => {
  const before = nodeAt(1, size(1, 1, 1));
  const node = { ...before, url: 'http://moved.test' };
  const asked: string[] = [];
  const late = Promise.withResolvers<Findings>();
  const proved = Promise.withResolvers<void>();
  const health: Health = new Health({
    probe: async ({ url }) => {
      asked.push(url);
      return url === node.url ? PROVED : late.promise;
    },
    isAsked: () => true,
    isListed: () => false,
    asksPrefix: () => true,
    onChange: () => health.proofOf(node).isKeyProved && proved.resolve(),
    now: () => 7,
    signal: never,
    log: createLogger('test', 'silent'),
  });
  const first = health.probe(before);
  void health.probe(node);
  late.resolve({ key: { message: 'no answer', isSilent: true }, prefix: undefined });
  await first;
  await proved.promise;
  assert.deepEqual(asked, [before.url, node.url]);
  assert.equal(health.outageOf(node.nodeId), undefined);
});

test('strangers that answer slowly keep no listed node from being asked', { timeout: 5_000 }, async () => {
  const [listed, ...strangers] = Array.from({ length: 101 }, (_, index) => nodeAt(index, size(1, 1, 1)));
  const late = Promise.withResolvers<Findings>();
  const health = new Health({
    probe: async ({ nodeId }) => (nodeId === listed!.nodeId ? PROVED : late.promise),
    isAsked: () => true,
    isListed: ({ nodeId }) => nodeId === listed!.nodeId,
    asksPrefix: () => true,
    onChange: () => {},
    now: () => 7,
    signal: never,
    log: createLogger('test', 'silent'),
  });
  const asked = health.probeAll(strangers);
  await health.probe(listed!);
  assert.ok(health.proofOf(listed!).isKeyProved);
  late.resolve(PROVED);
  await asked;
  assert.ok(strangers.every((node) => health.proofOf(node).isKeyProved));
});

test('what never proved its key is asked ever less often, unless the operator lists it', async () => {
  const node = nodeAt(1, size(1, 1, 1));
  const silent: Findings = { key: { message: 'no', isSilent: true }, prefix: undefined };
  const listed = createHealth(() => silent);
  for (const nowMs of [0, 10_000, 20_000]) {
    listed.seen.nowMs = nowMs;
    await listed.health.probe(node);
  }
  assert.equal(listed.seen.probes, 4);
  const { health, seen } = createHealth(() => silent, false);
  for (let second = 0; second < 3_600; second += 10) {
    seen.nowMs = second * 1000;
    await health.probe(node);
  }
  assert.ok(seen.probes >= 8 && seen.probes <= 20, `${seen.probes} probes in an hour`);
  const [before] = [seen.probes];
  await health.probe({ ...node, url: 'http://another.test', itemHash: sha256Hex('new') });
  assert.equal(seen.probes, before + 1, 'a new URL is asked at once');
});
