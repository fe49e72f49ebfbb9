import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildNetworkMessage, createSigner, generatePrivateKey } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { METRICS_POST_TYPES, SCORING_CHANNEL } from '@skerry/protocol';
import { findSystems } from './facts.ts';

const idOf = (digit: string) => digit.repeat(64);
const [few, many, gone] = [1, 2, 3].map(() => createSigner(generatePrivateKey())) as [
  ReturnType<typeof createSigner>,
  ReturnType<typeof createSigner>,
  ReturnType<typeof createSigner>,
];
const NEWEST = 1_780_000_000;

/** What a monitor measured: of each node its autonomous system. */
function measure(signer: typeof few, time: number, systems: Record<string, number | null>) {
  const crn = Object.entries(systems).map(([digit, asn]) => ({
    node_id: idOf(digit),
    measured_at: time,
    asn,
  }));
  const content = { version: '1.0', tags: [], metrics: { ccn: [], crn } };
  const draft = {
    ...{ type: 'POST', channel: SCORING_CHANNEL, time },
    content: { type: METRICS_POST_TYPES[0], content },
  };
  const { message } = JSON.parse(buildNetworkMessage(draft, signer).body);
  return { ...message, item_type: 'inline', content: JSON.parse(message.item_content) };
}

test('a monitor that published last hides nothing that others found; of measurements of long ago nothing is told', async () => {
  const messages = [
    measure(few, NEWEST, { a: 1, b: null }),
    measure(many, NEWEST - 60, { a: 2, b: 2, c: 2 }),
    measure(gone, NEWEST - 86_401, { d: 3 }),
  ];
  await using core = await serving(({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://core');
    const owners = searchParams.get('owners')!.split(',');
    const own = messages.filter(({ sender }) => owners.includes(sender));
    const page = { pagination_per_page: 1, next_cursor: null };
    response.end(JSON.stringify({ ...page, messages: own.slice(0, 1) }));
  });
  const publishers = [many, few, gone].map(({ address }) => address);
  const { fact, measuredAt, found } = await findSystems({ coreUrl: core.url, publishers });
  assert.deepEqual([fact.kind, fact.itemHash, measuredAt], ['proven', messages[0].item_hash, NEWEST]);
  assert.deepEqual(
    found.map(({ nodeId, asn }) => [nodeId, asn]),
    [
      [idOf('a'), 1],
      [idOf('b'), 2],
      [idOf('c'), 2],
    ],
  );
});

test('measurements of one monitor that do not count are told, and hide nothing that others found', async () => {
  const right = measure(few, NEWEST - 60, { a: 1 });
  await using core = await serving(({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://core');
    // Signed by another one than whose they are said to be.
    const newest = searchParams.get('owners') === few.address ? right : measure(gone, NEWEST, { d: 3 });
    response.end(JSON.stringify({ pagination_per_page: 1, next_cursor: null, messages: [newest] }));
  });
  const publishers = [many, few].map(({ address }) => address);
  const { fact, measuredAt, found } = await findSystems({ coreUrl: core.url, publishers });
  assert.deepEqual([fact.kind, measuredAt], ['wrong', NEWEST - 60]);
  assert.match(fact.why, /who is not a publisher \(INVALID_SIGNATURE\)$/);
  assert.deepEqual(
    found.map(({ nodeId, asn }) => [nodeId, asn]),
    [[idOf('a'), 1]],
  );
});
