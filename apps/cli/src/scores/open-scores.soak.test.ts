import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { CoreClient, call, createSigner, publishMessage, type ScoresContent } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { MEASUREMENTS_API } from '@skerry/protocol/api/core/measurements';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { STATUS_API } from '@skerry/protocol/api/status';
import { startDaemon, startFront, startUp } from '../testing/parts.ts';
import { run, SKERRY, say, until } from '../testing/shell.ts';

const HOUR = '6s';
/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
/** What asks and what is measured share two cores: asking all the time would be what is measured. */
const ASK_AGAIN_MS = 250;
const SLOW_MS = 700;
/** Of messages that are asked for by their hashes. */
const HASHES_PER_PAGE = 50;

type Columns = Readonly<Record<string, readonly (string | number | null)[]>>;

interface Published {
  readonly item_hash: string;
  readonly content: ScoresContent;
}

/**
 * The score of a compute node by the formula as it is written, in floating point, from what the lookup serves. A latency that
 * nobody could measure is worth nothing, and nor is an hour in which the node did not say its version.
 */
function scoreByHand(columns: Columns, rows: readonly number[]): number {
  const factor = (name: string, limit: number, index: number) => {
    const latency = columns[name]![index];
    return typeof latency === 'number' ? Math.max(0, 1 - latency ** 2 / limit) : 0;
  };
  const qualities = rows.map((index) =>
    columns.version![index] === null
      ? 0
      : Math.cbrt(
          factor('base_latency', 4, index) *
            factor('diagnostic_vm_latency', 4, index) *
            factor('full_check_latency', 40, index),
        ),
  );
  const sum = qualities
    .toReversed()
    .reduce(
      (total, quality, index) =>
        total + quality * (0.8 * 0.01 * 0.99 ** index + 0.2 * 0.001 * 0.999 ** index),
      0,
    );
  return sum ** 0.75;
}

/** The most that so many hours are worth where nothing is slow but the diagnostic program. */
const mostOf = (hours: number, delayMs: number) =>
  scoreByHand(
    {
      version: Array(hours).fill(''),
      base_latency: Array(hours).fill(0),
      diagnostic_vm_latency: Array(hours).fill(delayMs / 1000),
      full_check_latency: Array(hours).fill(0),
    },
    [...Array(hours).keys()],
  );

async function listMessages(url: string, hashes: readonly string[]): Promise<NetworkMessageView[]> {
  const found: NetworkMessageView[] = [];
  for (let at = 0; at < hashes.length; at += HASHES_PER_PAGE) {
    const query = { hashes: hashes.slice(at, at + HASHES_PER_PAGE).join(','), pagination: HASHES_PER_PAGE };
    found.push(...(await call(url, NETWORK_LISTS_API.listNetworkMessages, { query })).messages);
  }
  return found;
}

/** Sends what one core node has to another, byte for byte. */
async function copyMessages(to: string, messages: readonly NetworkMessageView[]): Promise<void> {
  for (const one of messages) {
    const { chain, sender, type, channel, time, item_type, item_hash, item_content, signature } = one;
    const message = { chain, sender, type, channel, time, item_type, item_hash, item_content, signature };
    await publishMessage(to, JSON.stringify({ sync: true, message }));
  }
}

const skerryOn = (url: string, ...args: string[]) => run(process.execPath, [SKERRY, '--core', url, ...args]);

async function verifyOn(url: string, hash: string) {
  const { code, stdout, stderr } = await skerryOn(url, '--json', 'score', 'verify', hash);
  return { code, body: JSON.parse(stdout || stderr) };
}

test('a devnet of one core and two compute nodes: measured, looked up, scored, and verified on another core node', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-scores-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const [fastFront, slowFront] = [stack.use(await startFront(0)), stack.use(await startFront(SLOW_MS))];
  const monitor = createSigner(await loadOrCreateKeyFile(join(dir, 'net', 'monitor', 'key')));
  const quietNode = { SKERRY_COMPUTE_INSTALL_PACKAGES: 'no', SKERRY_COMPUTE_CACHE_DIR: join(dir, 'cache') };
  const [net, second] = await Promise.all([
    startUp({ SKERRY_HOME: dir, ...quietNode, SKERRY_COMPUTE_ANNOUNCE_URL: fastFront.url }, [
      '--hour',
      HOUR,
      '--data-dir',
      join(dir, 'net'),
    ]).then((started) => stack.use(started)),
    startDaemon('core', {
      SKERRY_CORE_DATA_DIR: join(dir, 'second'),
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_SCORING_PUBLISHERS: monitor.address,
    }).then((started) => stack.use(started)),
  ]);
  const coreUrl = net.urls.core!;
  fastFront.passOnTo(net.urls.compute!);
  const slow = stack.use(
    await startDaemon('compute', {
      ...quietNode,
      SKERRY_COMPUTE_DATA_DIR: join(dir, 'slow'),
      SKERRY_COMPUTE_PORT: '0',
      SKERRY_COMPUTE_HOST: '127.0.0.1',
      SKERRY_COMPUTE_CORE_URL: coreUrl,
      SKERRY_COMPUTE_ANNOUNCE_URL: slowFront.url,
    }),
  );
  slowFront.passOnTo(slow.url);
  const idOf = async (url: string) => (await call(url, NODE_API.getNodeConfig, {})).node_hash!;
  const [fastId, slowId] = [await idOf(net.urls.compute!), await idOf(slow.url)];
  say('a devnet with two compute nodes and another core node run');

  const latest = async () => {
    const query = { types: 'net-scoring-scores', pagination: 1 };
    return (await call(coreUrl, NETWORK_LISTS_API.listNetworkPosts, { query })).posts[0] as
      | Published
      | undefined;
  };
  const rowOf = ({ content }: Published, id: string) => content.scores.crn.find((row) => row.node_id === id);
  let published: Published | undefined;
  await until('both nodes have a score from two hours or more', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    published = await latest();
    const rows = [fastId, slowId].map((id) => published && rowOf(published, id));
    return rows.every((row) => row && row.measurements.record_count >= 2 && row.total_score > 0);
  });
  const { content, item_hash: scoresHash } = published!;
  const core = new CoreClient({ url: coreUrl });
  const hashes = (await (await core.getFile(content.inputs.metrics.hash)).text()).trim().split('\n');
  assert.equal(hashes.length, content.inputs.metrics.count);
  say(`scored from ${hashes.length} hours`);

  // The scores name the messages that counted; the lookup says which message each row is of.
  const counted: ReadonlySet<unknown> = new Set(hashes);
  for (const [id, delayMs] of [
    [fastId, 0],
    [slowId, SLOW_MS],
  ] as const) {
    const asked = { params: { node_hash: id }, query: {} };
    const columns = (await call(coreUrl, MEASUREMENTS_API.getComputeMeasurements, asked)).metrics as Columns;
    const rows = columns.item_hash!.flatMap((hash, index) => (counted.has(hash) ? [index] : []));
    const row = rowOf(published!, id)!;
    assert.equal(row.measurements.record_count, rows.length);
    const latencies = rows.map((index) => columns.diagnostic_vm_latency![index]);
    assert.ok(
      latencies.every((latency) => typeof latency !== 'number' || latency * 1000 >= delayMs),
      `the diagnostic program is ${delayMs} ms away: ${latencies}`,
    );
    const expected = scoreByHand(columns, rows);
    assert.ok(Math.abs(row.total_score - expected) < 1e-9, `${row.total_score} is not ${expected}`);
    assert.ok(row.total_score <= mostOf(rows.length, delayMs), 'what is slow is worth less');
  }
  say(`fast ${rowOf(published!, fastId)!.total_score}, slow ${rowOf(published!, slowId)!.total_score}`);

  const here = await verifyOn(coreUrl, scoresHash);
  assert.deepEqual([here.code, here.body.isSame, here.body.computed], [0, true, content.scores_hash]);
  // The other core node gets the scores and the files that they name, and no measurements yet.
  const other = new CoreClient({ url: second.url, signer: monitor });
  for (const hash of [content.inputs.metrics.hash, content.inputs.versions])
    await other.storeFile(await (await core.getFile(hash)).blob(), 'input', hash);
  await copyMessages(second.url, await listMessages(coreUrl, [scoresHash]));
  const before = await verifyOn(second.url, scoresHash);
  assert.deepEqual([before.code, before.body.isSame], [1, false]);
  assert.equal(before.body.missing.length, content.inputs.metrics.count);
  await copyMessages(second.url, await listMessages(coreUrl, hashes));
  const there = await verifyOn(second.url, scoresHash);
  assert.deepEqual([there.code, there.body.isSame, there.body.computed], [0, true, content.scores_hash]);
  say('verified on the other core node');

  const settings = JSON.stringify(content.settings);
  const explained = await skerryOn(
    ...([
      second.url,
      'score',
      'explain',
      slowId,
      '--publisher',
      monitor.address,
      '--settings',
      settings,
    ] as const),
  );
  // This node was not told of the version table, and says what that costs.
  assert.equal(explained.code, 0, explained.stderr);
  assert.match(explained.stdout, /version \S+ does not count/);
  const shown = await skerryOn(coreUrl, 'score', 'latest', '--publisher', monitor.address);
  assert.ok(shown.stdout.includes(slowId), shown.stdout || shown.stderr);
  await until('every service is online', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    const services = await call(net.urls.status!, STATUS_API.listServices, {});
    const names = ['core node', 'scheduler', 'gateway', `compute node ${fastId.slice(0, 12)}`];
    return names.every((name) => services.find((service) => service.name === name)?.online);
  });
});
