import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { DEFAULT_SCORING_SETTINGS, SCORES_POST_TYPE, SCORING_CHANNEL } from '@skerry/protocol';
import { CoreClient } from '../core-client.ts';
import { buildNetworkMessage } from '../network-message.ts';
import { createSigner } from '../signer.ts';
import { computeScoresOf } from './compute.ts';
import { verifyScores } from './verify.ts';

/** A core node that gives what it was told to, whoever signed it. */

const HOUR = 3_600;
const TO = 1_780_000_000 - (1_780_000_000 % HOUR);
const NODE = 'a'.repeat(64);
const VERSIONS = { 'skerry-compute': { '1.0.0': { released_on: '2020-01-01' } } };

const monitor = createSigner(`0x${'30'.repeat(32)}`);
const stranger = createSigner(`0x${'66'.repeat(32)}`);

interface Row {
  readonly item_hash: string;
  readonly sender: string;
  readonly signature: string;
  readonly item_type: string | null;
  readonly item_content: string | null;
  readonly channel: string | null;
  readonly time: number;
  readonly content: Record<string, unknown>;
}

const rowOf = (body: string): Row => {
  const { message } = JSON.parse(body) as { message: Row };
  return { ...message, item_type: 'inline', content: JSON.parse(message.item_content!) };
};

/** An hour's measurement of one node. */
function measure(hoursAgo: number, latency: number, signer = monitor): Row {
  const record = {
    ...{ measured_at: TO - hoursAgo * HOUR, node_id: NODE, asn: 64_512, version: '1.0.0' },
    ...{ base_latency: latency, diagnostic_vm_latency: latency, full_check_latency: latency },
    config_node_hash: NODE,
  };
  const content = {
    ...{ address: monitor.address, time: TO - hoursAgo * HOUR },
    type: 'net-scoring-metrics',
    content: { version: '1.0', tags: [], metrics: { ccn: [], crn: [record] } },
  };
  const time = TO - hoursAgo * HOUR;
  return rowOf(buildNetworkMessage({ type: 'POST', channel: SCORING_CHANNEL, time, content }, signer).body);
}

async function serve(
  metrics: () => readonly Row[],
  scores: () => Row | undefined,
  files: Map<string, string>,
) {
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://core');
    const file = files.get(url.pathname.split('/').at(-1)!);
    if (file !== undefined) return void response.end(file);
    response.setHeader('content-type', 'application/json');
    if (url.pathname.startsWith('/api/v0/messages/')) return void response.end(JSON.stringify(scores()));
    const isScores = url.searchParams.has('hashes');
    const messages = isScores ? [scores()].filter(Boolean) : metrics();
    response.end(JSON.stringify({ messages, pagination_per_page: 10, next_cursor: null }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('M13: measurements that nobody signed are not counted, and named, whatever the core node says of them', async () => {
  const honest = [measure(1, 0.2), measure(2, 0.3), measure(3, 0.2)];
  let given: readonly Row[] = honest;
  let scores: Row | undefined;
  const files = new Map<string, string>();
  await using node = await serve(
    () => given,
    () => scores,
    files,
  );
  const terms = {
    ...{ period: { from: TO - 10 * HOUR, to: TO }, settings: DEFAULT_SCORING_SETTINGS, versions: VERSIONS },
    ...{ publishers: [monitor.address], registrations: undefined, tags: [] },
  };
  const computed = await computeScoresOf({ coreUrl: node.url }, terms);
  assert.ok(computed.content.scores.crn[0]!.total_score > 0);
  for (const [hash, text] of computed.files) files.set(hash, text);
  const content = { type: SCORES_POST_TYPE, content: computed.content };
  const { body, itemHash } = buildNetworkMessage(
    { type: 'POST', channel: SCORING_CHANNEL, content: { ...content } },
    monitor,
  );
  scores = rowOf(body);
  const core = new CoreClient({ url: node.url });
  const verify = () => verifyScores(core, itemHash);

  let progress = 0;
  const told = await verifyScores(core, itemHash, (verified) => {
    progress = verified;
  });
  assert.deepEqual([told.isSame, told.refused, told.publisher], [true, [], monitor.address]);
  assert.equal(progress, honest.length);

  const [first, second, third] = honest as [Row, Row, Row];
  const changed = (row: Row, latency: string): Row => {
    const item_content = row.item_content!.replace('"base_latency":0.2', `"base_latency":${latency}`);
    return { ...row, item_content, content: JSON.parse(item_content) };
  };
  const lies: Record<string, readonly Row[]> = {
    'one byte of a content': [changed(first, '0.1'), second, third],
    'the listed content alone': [
      { ...first, item_content: null, item_type: 'storage', content: changed(first, '0.1').content },
      second,
      third,
    ],
    'a measurement that a stranger signed for the publisher': [measure(0.5, 0.1, stranger), ...honest],
    'the same under the name of the publisher': [
      { ...measure(0.5, 0.1, stranger), sender: monitor.address },
      ...honest,
    ],
    'a row in another form': [{ ...first, time: 'now' } as unknown as Row, second, third],
    'a signature of another message': [{ ...measure(0.5, 0.1), signature: first.signature }, ...honest],
  };
  for (const [what, rows] of Object.entries(lies)) {
    given = rows;
    const verdict = await verify();
    assert.equal(verdict.isSame, false, what);
    assert.deepEqual(
      verdict.refused.map((one) => one.itemHash),
      [rows[0]!.item_hash],
      what,
    );
  }

  // A time that is not the signed one moves nothing to another hour.
  given = [{ ...first, time: TO + 5 }, second, third];
  assert.equal((await verify()).computed, told.computed);
  // What is kept back is missing.
  given = [first, third];
  assert.deepEqual((await verify()).missing, [second.item_hash]);
});

test('a row in another form is named among published scores, and hides no others', async () => {
  const metrics = [measure(1, 0.2), measure(2, 0.3)];
  let scores: Row | undefined;
  const files = new Map<string, string>();
  await using node = await serve(
    () => metrics,
    () => scores,
    files,
  );
  const computed = await computeScoresOf(
    { coreUrl: node.url },
    {
      ...{ period: { from: TO - 10 * HOUR, to: TO }, settings: DEFAULT_SCORING_SETTINGS, versions: VERSIONS },
      ...{ publishers: [monitor.address], registrations: undefined, tags: [] },
    },
  );
  for (const [hash, text] of computed.files) files.set(hash, text);
  const publish = (crn: readonly unknown[]) => {
    const content = { ...computed.content, scores: { ...computed.content.scores, crn } };
    const draft = { type: 'POST', channel: SCORING_CHANNEL, content: { type: SCORES_POST_TYPE, content } };
    const { body, itemHash } = buildNetworkMessage(draft, monitor);
    scores = rowOf(body);
    return itemHash;
  };
  const core = new CoreClient({ url: node.url });
  const { crn } = computed.content.scores;
  const other = 'b'.repeat(64);
  const { isSame, odd, different } = await verifyScores(core, publish([{ node_id: other }, ...crn]));
  const why = 'its total_score is not a number from 0 to 1';
  assert.deepEqual([isSame, odd, different], [false, [{ at: 'crn[0]', node_id: other, why }], [other]]);
  // A row that counts, and is not the one that is computed.
  const [{ codes: _, ...lacking }] = crn as [(typeof crn)[number]];
  const bare = await verifyScores(core, publish([lacking]));
  assert.deepEqual([bare.isSame, bare.odd, bare.different], [false, [], [NODE]]);
});

test('M13: scores that their publisher did not sign are no scores', async () => {
  const content = { type: SCORES_POST_TYPE, content: { scores: { ccn: [], crn: [] } } };
  const { body, itemHash } = buildNetworkMessage(
    { type: 'POST', channel: SCORING_CHANNEL, content },
    stranger,
  );
  const signed = rowOf(body);
  let given: Row = signed;
  await using node = await serve(
    () => [],
    () => given,
    new Map(),
  );
  const core = new CoreClient({ url: node.url });
  given = { ...signed, sender: monitor.address };
  await assert.rejects(verifyScores(core, itemHash), { code: 'INVALID_SIGNATURE' });
  const other = buildNetworkMessage({ type: 'POST', channel: SCORING_CHANNEL, content, time: 7 }, stranger);
  given = rowOf(other.body);
  await assert.rejects(verifyScores(core, itemHash), { code: 'HASH_MISMATCH' });
});
