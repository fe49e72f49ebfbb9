import assert from 'node:assert/strict';
import { text as bodyOf } from 'node:stream/consumers';
import { test } from 'node:test';
import { buildNetworkMessage, CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { isVersionValid, parseVersionTable, SCORES_POST_TYPE, SCORING_CHANNEL } from '@skerry/protocol';
import type { StoredFileView } from '@skerry/protocol/api/core/storage';
import { addReleases, createScoresPublisher, isPublished, parseRelease } from './scores.ts';
import { startNode } from './testing/scene.ts';

test('releases are SOFTWARE@VERSION, and nothing else', () => {
  assert.deepEqual(parseRelease('skerry-core@1.2.0-rc.1+x'), {
    software: 'skerry-core',
    version: '1.2.0-rc.1+x',
  });
  for (const text of ['', 'skerry-core', '@1', 'skerry-core@', 'Skerry@1', 'a@b c', 'a@é'])
    assert.throws(() => parseRelease(text), /SOFTWARE@VERSION/, text);
});

const DAY_MS = 86_400_000;
const GRACE_DAYS = 14;

test('a table gets what it lacks of each software, which replaces what it had and the setting does not list', () => {
  const table = {
    'skerry-core': { '1.0.0': { released_on: '2026-01-01' } },
    other: { '9': { released_on: '2020-01-01' } },
  };
  const releases = ['skerry-core@1.1.0', 'skerry-compute@1.1.0'].map(parseRelease);
  const content = addReleases(table, releases, '2026-02-03');
  // An aggregate's fields are replaced one by one: what is not named stays.
  assert.deepEqual(content, {
    'skerry-core': {
      '1.0.0': { released_on: '2026-01-01', replaced_on: '2026-02-03' },
      '1.1.0': { released_on: '2026-02-03', replaced_on: null },
    },
    'skerry-compute': { '1.1.0': { released_on: '2026-02-03', replaced_on: null } },
  });
  const entered = parseVersionTable(content);
  const counts = (version: string, date: string) =>
    isVersionValid(entered, 'skerry-core', version, Date.parse(date) / DAY_MS, GRACE_DAYS);
  assert.deepEqual([counts('1.0.0', '2026-02-16'), counts('1.0.0', '2026-02-17')], [true, false]);
  assert.equal(counts('1.1.0', '2026-02-17'), true);
  assert.equal(addReleases(parseVersionTable(content), releases, '2026-02-04'), undefined);
});

test('a version counts for as long as the setting lists it, and is replaced once it does not', () => {
  const both = ['skerry-core@1.0.0', 'skerry-core@1.1.0'].map(parseRelease);
  const [, newer] = both;
  const content = (first: object, second: object) => ({ 'skerry-core': { '1.0.0': first, '1.1.0': second } });
  const [old, added] = [{ released_on: '2026-01-01' }, { released_on: '2026-02-03', replaced_on: null }];
  assert.deepEqual(addReleases({}, both, '2026-02-03'), content(added, added));
  assert.deepEqual(addReleases({ 'skerry-core': { '1.0.0': old } }, both, '2026-02-03'), content(old, added));
  const table = parseVersionTable(content(old, added));
  assert.equal(addReleases(table, both, '2026-03-01'), undefined);
  const ended = content({ ...old, replaced_on: '2026-03-01' }, added);
  assert.deepEqual(addReleases(table, [newer!], '2026-03-01'), ended);
  assert.equal(addReleases(parseVersionTable(ended), [newer!], '2026-03-02'), undefined);
  // What was entered otherwise and is newer, or counts until a later one that is entered already, stays as it is.
  const rc = { released_on: '2026-02-10', replaced_on: null, prerelease: true };
  assert.equal(
    addReleases({ 'skerry-core': { '1.1.0': added, '1.2.0-rc': rc } }, [newer!], '2026-03-01'),
    undefined,
  );
  const planned = content({ ...old, replaced_on: '2026-02-03' }, added);
  assert.equal(addReleases(parseVersionTable(planned), [newer!], '2026-02-01'), undefined);
});

test('scores are published once for an hour, however often the monitor is started in it', () => {
  const at = (hour: string, scores_hash = 'a') => ({
    period: { from_date: '2026-01-01T00:00:00.000Z', to_date: `2026-01-02T${hour}:00:00.000Z` },
    scores_hash,
  });
  assert.equal(isPublished(undefined, at('01')), false);
  assert.equal(isPublished(at('01'), at('01')), true);
  assert.equal(isPublished(at('01'), at('02')), false, 'the next hour, in which nothing changed');
  assert.equal(isPublished(at('01'), at('01', 'b')), false, 'a report came late');
});

const HOUR = 3_600;
/** An hour in which scores are due that are published every six hours. */
const DUE = 82_420 * 6;
const EVERY_HOURS = 6;

interface Row {
  readonly item_hash: string;
  readonly item_content: string;
  readonly time: number;
}

const rowOf = (body: string): Row => {
  const { message } = JSON.parse(body);
  return { ...message, item_type: 'inline', content: JSON.parse(message.item_content) };
};

/** Files are kept without being looked at. */
class Client extends CoreClient {
  override async storeFile(): Promise<StoredFileView> {
    return {} as StoredFileView;
  }
}

/** A core node with a measurement of each hour, which keeps the scores that it is sent. */
async function startScene() {
  const signer = createSigner(generatePrivateKey());
  const told: string[] = [];
  /** How many are asked for, in each question for measurements. */
  const pages: (string | null)[] = [];
  const state = { isAway: false, refusal: '', metrics: [] as Row[], scores: [] as Row[] };
  for (let hour = DUE - 10; hour < DUE + 10; hour++) {
    const record = { node_id: 'a'.repeat(64), measured_at: hour * HOUR, asn: 64_512, version: '1.0.0' };
    const metrics = { ccn: [], crn: [{ ...record, base_latency: 0.1 }] };
    const content = { type: 'net-scoring-metrics', content: { version: '1.0', tags: [], metrics } };
    const draft = { type: 'POST', channel: SCORING_CHANNEL, time: (hour + 0.5) * HOUR, content };
    state.metrics.unshift(rowOf(buildNetworkMessage(draft, signer).body));
  }
  const answerOf = (method: string | undefined, { pathname, searchParams }: URL, body: string) => {
    if (state.isAway) return [503, { status: 'error', code: 'DATABASE_UNAVAILABLE', error: 'away' }] as const;
    if (method === 'POST' && state.refusal !== '')
      return [403, { status: 'error', code: state.refusal, error: 'no' }] as const;
    if (method === 'POST') {
      state.scores.unshift(rowOf(body));
      const publication_status = { status: 'success', failed: [] };
      return [200, { status: 'success', publication_status, message_status: 'processed' }] as const;
    }
    if (pathname.includes('/aggregates/'))
      return [404, { status: 'error', code: 'AGGREGATE_NOT_FOUND', error: 'none' }] as const;
    const to = Number(searchParams.get('endDate') ?? Number.POSITIVE_INFINITY);
    const isScores = searchParams.get('contentTypes') === SCORES_POST_TYPE;
    if (!isScores) pages.push(searchParams.get('pagination'));
    const messages = isScores ? state.scores.slice(0, 1) : state.metrics.filter(({ time }) => time < to);
    return [200, { messages, pagination_per_page: 10, next_cursor: null }] as const;
  };
  const node = await startNode(async (request, response) => {
    const [status, answer] = answerOf(
      request.method,
      new URL(request.url!, 'http://core'),
      await bodyOf(request),
    );
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  const { signal } = new AbortController();
  const publish = createScoresPublisher({
    core: new Client({ url: node.url, signer, signal }),
    ...{ nodeListOwner: undefined, hourSeconds: HOUR, everyHours: EVERY_HOURS, tags: [], signal },
    log: createLogger('monitor', 'warn', { write: (line) => void told.push(line) }),
  });
  return {
    state,
    told,
    pages,
    /** Scores of a time before this form. */
    publishOdd() {
      const draft = { type: 'POST', channel: SCORING_CHANNEL, time: DUE * HOUR };
      const content = { type: SCORES_POST_TYPE, content: { version: '2.0' } };
      state.scores.unshift(rowOf(buildNetworkMessage({ ...draft, content }, signer).body));
    },
    publishAt: (hour: number) => publish((DUE + hour) * HOUR * 1000),
    /** The ends of what was published, oldest first. */
    published: () =>
      state.scores
        .map(({ item_content }) => Date.parse(JSON.parse(item_content).content.period.to_date) / 1000)
        .map((end) => end / HOUR - DUE)
        .toReversed(),
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  };
}

test('scores that could not be published when they were due are published as soon as they can be, and once', async () => {
  await using scene = await startScene();
  scene.state.isAway = true;
  await assert.rejects(scene.publishAt(0), { code: 'DATABASE_UNAVAILABLE' });
  scene.state.isAway = false;
  for (let hour = 1; hour <= 8; hour++) await scene.publishAt(hour);
  assert.deepEqual([scene.published(), scene.told], [[1, 6], []]);
});

test('scores in another form that this monitor published once do not keep it from publishing', async () => {
  await using scene = await startScene();
  scene.publishOdd();
  await scene.publishAt(1);
  const [newest] = scene.state.scores;
  assert.equal(JSON.parse(newest!.item_content).content.version, '1.1');
  assert.match(JSON.parse(scene.told[0]!).msg, /what was published last does not count/);
  assert.equal(scene.told.length, 1);
});

test('scores that are refused for good are told once, and not computed again until the next ones are due', async () => {
  await using scene = await startScene();
  scene.state.refusal = 'CREDIT_INSUFFICIENT';
  await assert.rejects(scene.publishAt(0), { code: 'CREDIT_INSUFFICIENT' });
  scene.state.refusal = 'NOT_PERMITTED';
  await scene.publishAt(1);
  scene.state.refusal = '';
  const asked = scene.pages.length;
  for (let hour = 1; hour < 6; hour++) await scene.publishAt(hour);
  assert.equal(scene.pages.length, asked);
  await scene.publishAt(6);
  assert.deepEqual(scene.published(), [6]);
  const next = new Date((DUE + 6) * HOUR * 1000).toISOString();
  assert.deepEqual(
    scene.told.map((line) => JSON.parse(line).next),
    [next],
  );
});

test('the log names measurements that are not what the monitor signed: scores are without them', async () => {
  await using scene = await startScene();
  const [newest, ...others] = scene.state.metrics.slice(10) as [Row, ...Row[]];
  const changed = newest.item_content.replace('"base_latency":0.1', '"base_latency":0.2');
  scene.state.metrics = [{ ...newest, item_content: changed }, ...others];
  await scene.publishAt(0);
  assert.equal(scene.told.length, 1);
  const { count, first } = JSON.parse(scene.told[0]!);
  assert.deepEqual([count, first.itemHash], [1, newest.item_hash]);
  const { inputs } = JSON.parse(scene.state.scores[0]!.item_content).content;
  assert.equal(inputs.metrics.count, others.length);
});

test('where nothing was measured of late, the whole period is not read to find that out', async () => {
  await using scene = await startScene();
  await scene.publishAt(20);
  assert.deepEqual([scene.published(), scene.pages], [[], ['1']]);
});
