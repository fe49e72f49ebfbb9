import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { countingScores } from '../../pure/scores/counting.ts';
import { askScores, scoresPauseMs, scoresQuestions } from './scores.ts';

// What a browser has.
Object.defineProperty(globalThis, 'location', { value: { href: 'http://127.0.0.1/' } });
Object.defineProperty(navigator, 'onLine', { value: true });

const [NODE, OTHER] = ['a'.repeat(64), 'b'.repeat(64)] as const;
const { signal } = new AbortController();

const published = (sender: string, time: number, scores: unknown) => ({
  ...{ item_hash: `${sender} ${time}`, sender, time },
  content: { content: { measured_at: null, settings: {}, scores } },
});

/** Asks a core node that has these messages, newest first. */
async function askOf(messages: readonly ReturnType<typeof published>[], ...publishers: string[]) {
  await using core = await serving(({ url }, response) => {
    const { searchParams } = new URL(url!, 'http://core');
    const senders = searchParams.get('addresses')!.split(',');
    const own = messages.filter(({ sender }) => senders.includes(sender));
    response.end(JSON.stringify({ messages: own.slice(0, Number(searchParams.get('pagination'))) }));
  });
  return (await askScores(scoresQuestions(core.url, publishers), signal)).messages;
}

test('a publisher that publishes often hides no other', async () => {
  const scores = { ccn: [], crn: [{ node_id: NODE, total_score: 0.5, measurements: { record_count: 9 } }] };
  const busy = Array.from({ length: 99 }, (_, at) => published('0xbusy', 999 - at, { ccn: [], crn: [] }));
  const messages = await askOf([...busy, published('0xQuiet', 7, scores)], '0xbusy', '0xQuiet');
  assert.deepEqual([messages.length, messages[0]!.time, messages.at(-1)!.sender], [25, 999, '0xQuiet']);
  const { compute } = countingScores(messages, 7_000);
  assert.deepEqual(
    compute.map(({ node_id: id, total_score: total }) => [id, total]),
    [[NODE, 0.5]],
  );
});

test('the newest of a publisher is the last that it says, in whatever form; a row in another form hides no other', async () => {
  const row = (node_id: unknown, total_score: unknown) => ({ node_id, total_score });
  const rows = [row(NODE, 2), row('x', 0.1), null, row(OTHER, 0.5)];
  const messages = [
    ...[1, 'x', null, { ccn: 'x' }].map((scores, at) => published(`0xodd${at}`, 9, scores)),
    ...[0, 1, 2, 3].map((at) => published(`0xodd${at}`, 8, { ccn: [], crn: [row(NODE, 1)] })),
    published('0xrows', 7, { ccn: 'none', crn: rows }),
  ];
  const senders = ['0xodd0', '0xodd1', '0xodd2', '0xodd3', '0xrows'];
  const { core, compute } = countingScores(await askOf(messages, ...senders), 9_000);
  assert.deepEqual(core, []);
  const measurements = { total_nodes: null, nodes_with_identical_asn: null, record_count: 1 };
  assert.deepEqual(compute, [
    {
      ...{ node_id: OTHER, total_score: 0.5, decentralization: null, status: null, codes: [] },
      measurements: { ...measurements, total_score: null },
    },
  ]);
});

test('however many publishers there are, at most 24 and six a minute are asked', () => {
  const publishers = Array.from({ length: 30 }, (_, at) => `0x${at}`);
  const [alone, all] = [publishers.slice(0, 1), publishers].map((some) =>
    scoresQuestions('http://core', some),
  );
  assert.deepEqual([all!.length, scoresPauseMs(all!), scoresPauseMs(alone!)], [24, 240_000, 30_000]);
  const shown = (url: string) => new URL(url).searchParams.get('pagination');
  assert.deepEqual([shown(alone![0]!.url), shown(all![0]!.url)], ['48', '2']);
  assert.deepEqual(scoresQuestions('http://core', []), []);
});
