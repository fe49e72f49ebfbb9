import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { LIMITS, parseMetricsReport } from '@skerry/protocol';
import { keyOf } from './choice.ts';
import { listContentOf } from './network.ts';
import { type MeasuredNode, parseNodeAggregate } from './node-list.ts';
import { Session } from './probe/session.ts';
import { signReports } from './report.ts';

/** The longest that a node may announce. */
const URL_CHARS = LIMITS.urlChars;
const urlOf = (index: number) => `http://n${index}.test/`.padEnd(URL_CHARS, 'x');
const idOf = (index: number) => index.toString(16).padStart(64, '0');
const announced = (index: number): MeasuredNode => ({
  kind: 'compute',
  nodeId: idOf(index),
  url: urlOf(index),
  address: `0x${index.toString(16).padStart(40, '0')}`,
});

test('the node list that a monitor keeps does not grow with what strangers announce', () => {
  const { address: _, ...listed } = announced(5_000);
  const core: MeasuredNode = { kind: 'core', nodeId: idOf(1), url: 'http://core.test/' };
  const vouched: MeasuredNode = { ...announced(5_001), isListed: true };
  const strangers = Array.from({ length: 5_000 }, (_, index) => announced(index));
  const nodes = [core, listed, vouched, ...strangers];
  const answered = new Map([[keyOf('compute', idOf(7)), 1]]);
  const idsOf = (known: ReadonlyMap<string, number>) =>
    listContentOf(nodes, known).resource_nodes.map(({ hash }) => hash);
  assert.deepEqual(listContentOf(nodes, answered).nodes, [{ hash: idOf(1), address: 'http://core.test/' }]);
  assert.deepEqual(idsOf(answered), [idOf(7), idOf(5_000), idOf(5_001)]);
  // Another monitor that takes this list measures the same nodes.
  const measured = parseNodeAggregate(listContentOf(nodes, answered));
  assert.deepEqual(
    [measured[0], ...measured.slice(1).map(({ nodeId }) => nodeId)],
    [core, ...idsOf(answered)],
  );
  // The same, in whatever order they are told.
  assert.deepEqual(listContentOf(nodes.toReversed(), answered), listContentOf(nodes, answered));
  const all = new Map(strangers.map(({ nodeId }) => [keyOf('compute', nodeId), 1]));
  assert.ok(JSON.stringify(listContentOf(nodes, all)).length < 150_000);
  assert.ok(idsOf(all).length > 50);
});

test('an hour in which thousands of nodes say as much as they may is signed, and each of them is in it once', () => {
  const features = Array.from({ length: 16 }, (_, index) => `${index}`.padEnd(32, 'f'));
  const entries = Array.from({ length: 2_000 }, (_, index) => ({
    kind: 'compute' as const,
    record: { node_id: idOf(index), measured_at: 1, url: urlOf(index), features },
  }));
  const signer = createSigner(generatePrivateKey());
  const reports = signReports(
    entries,
    { signer, serverAddress: '', system: undefined, tags: [] },
    1_780_000_000,
  );
  const contents = reports.map(({ content }) => content!);
  // A page of ten of them is an answer that core nodes give.
  for (const content of contents) assert.ok(content.length < 1.5 * 1024 ** 2, `${content.length} bytes`);
  const ids = contents.flatMap((content) =>
    parseMetricsReport(JSON.parse(content).content).compute.map(({ nodeId }) => nodeId),
  );
  assert.deepEqual(
    ids,
    entries.map(({ record }) => record.node_id),
  );
  assert.equal(new Set(reports.map(({ itemHash }) => itemHash)).size, reports.length);
});

test('a visit that is over looks up no name', async () => {
  let lookups = 0;
  using session = new Session({
    url: 'http://127.0.0.1:9/',
    family: 0,
    mayReach: () => {
      lookups++;
      return true;
    },
    signal: AbortSignal.abort(),
  });
  assert.equal(await session.get('', { timeoutMs: 1_000 }), undefined);
  assert.equal(lookups, 0);
});

test('an address of the node list that is longer than any is none, and takes no time', () => {
  const row = (address: string) => ({ resource_nodes: [{ hash: idOf(1), address }] });
  const startUs = process.cpuUsage().user;
  assert.deepEqual(parseNodeAggregate(row(`x${'/'.repeat(100_000)}x`)), []);
  const spentMs = (process.cpuUsage().user - startUs) / 1_000;
  assert.ok(spentMs < 2_000, `${spentMs} ms`);
  assert.deepEqual(parseNodeAggregate(row('//a.test//')), [
    { kind: 'compute', nodeId: idOf(1), url: 'https://a.test/' },
  ]);
});
