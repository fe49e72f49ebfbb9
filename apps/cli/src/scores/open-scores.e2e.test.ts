import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  CoreClient,
  computeScoresOf,
  createSigner,
  publishScores,
  readVersionTable,
  requestJson,
} from '@skerry/client';
import { coreService } from '@skerry/core';
import { createLogger, loadOrCreateKeyFile, type RunningService, readConfig } from '@skerry/kit';
import { monitorService } from '@skerry/monitor';
import { DEFAULT_SCORING_SETTINGS, VERSIONS_KEY } from '@skerry/protocol';
import { run, SKERRY, say, until } from '../testing/shell.ts';
import { addRelease } from './actions.ts';

const HOUR_SECONDS = 10;
const TIMEOUT_MS = 120_000;
/** The nodes and what asks them share one process: asking all the time would be what is measured. */
const ASK_AGAIN_MS = 250;
const VERSION = '7.7.7';
const FAST = 'a'.repeat(64);
const SLOW = 'b'.repeat(64);
const CORE = 'c'.repeat(64);

const log = createLogger('test', 'warn');
const host = { log, signal: new AbortController().signal };

/** A compute node that runs everything and takes its time. */
async function startCompute(delayMs: number) {
  const server = createServer((request, response) => {
    response.setHeader('server', `skerry/${VERSION}`);
    const path = request.url ?? '';
    response.statusCode = path === '/about/login' ? 401 : 200;
    void setTimeout(delayMs).then(() => response.end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const startCore = (dataDir: string, publisher: string): Promise<RunningService> =>
  coreService.start(
    readConfig(coreService.config, {
      SKERRY_CORE_DATA_DIR: dataDir,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_SCORING_PUBLISHERS: publisher,
    }),
    host,
  );

interface NetworkMessages {
  messages: Record<string, unknown>[];
}

/** Sends what one core node has to another, byte for byte. */
async function copyMetrics(from: string, to: string): Promise<number> {
  const query = 'contentTypes=net-scoring-metrics&pagination=100';
  const { messages } = await requestJson<NetworkMessages>(`${from}/api/v0/messages.json?${query}`);
  for (const one of messages) {
    const { chain, sender, type, channel, time, item_type, item_hash, item_content, signature } = one;
    const message = { chain, sender, type, channel, time, item_type, item_hash, item_content, signature };
    await requestJson(`${to}/api/v0/messages`, {
      method: 'POST',
      body: JSON.stringify({ sync: true, message }),
    });
  }
  return messages.length;
}

type Columns = Record<string, (number | null)[]>;

/** The score of a compute node by the formula as it is written, in floating point, from what the lookup serves. */
function scoreByHand(columns: Columns, until_: number): number {
  const rows = columns
    .measured_at!.map((_, index) => index)
    .filter((index) => columns.measured_at![index]! < until_);
  const factor = (name: string, limit: number, index: number) =>
    Math.max(0, 1 - columns[name]![index]! ** 2 / limit);
  const qualities = rows.map((index) =>
    Math.cbrt(
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

test('measured, looked up, scored, published, and verified on another core node', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-scores-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const monitorKey = await loadOrCreateKeyFile(join(dir, 'monitor', 'key'));
  const signer = createSigner(monitorKey);
  const first = stack.use(await startCore(join(dir, 'first'), signer.address));
  const second = stack.use(await startCore(join(dir, 'second'), signer.address));
  const [coreUrl, otherUrl] = [first.urls[0]!, second.urls[0]!];
  say('two core nodes run');

  const fast = stack.use(await startCompute(0));
  const slow = stack.use(await startCompute(100));
  const core = new CoreClient({ url: coreUrl, signer });
  const resource_nodes = [
    { hash: FAST, address: fast.url, time: 1 },
    { hash: SLOW, address: slow.url, time: 2 },
  ];
  const post = (key: string, content: object) =>
    core.postMessage({ type: 'AGGREGATE', content: { key, content } });
  await post('corechannel', { nodes: [], resource_nodes });
  await post(VERSIONS_KEY, addRelease({}, 'skerry-compute', VERSION, '2020-01-01', false));
  await writeFile(join(dir, 'systems'), '127.0.0.0/8 64512 Loopback\n');
  const monitor = stack.use(
    await monitorService.start(
      readConfig(monitorService.config, {
        SKERRY_MONITOR_CORE_URL: coreUrl,
        SKERRY_MONITOR_DATA_DIR: join(dir, 'monitor'),
        SKERRY_MONITOR_HOUR_SECONDS: String(HOUR_SECONDS),
        SKERRY_MONITOR_NODE_LIST_OWNER: signer.address,
        SKERRY_MONITOR_CORE_NODES: `${CORE}@${coreUrl}`,
        SKERRY_MONITOR_ANNOUNCED_NODES: 'no',
        SKERRY_MONITOR_COMPUTE_FAMILY: 'any',
        SKERRY_MONITOR_ALLOW_PRIVATE: 'yes',
        SKERRY_MONITOR_ASN_FILE: join(dir, 'systems'),
      }),
      host,
    ),
  );
  assert.deepEqual(monitor.urls, []);
  const lookUp = async (kind: string, id: string) =>
    (await requestJson<{ metrics: Columns }>(`${coreUrl}/api/v0/${kind}/${id}/metrics`)).metrics;
  const hoursOf = (id: string) =>
    lookUp('compute', id).then(
      (columns) => columns.measured_at!.length,
      () => 0,
    );
  const areMeasured = async () => {
    await setTimeout(ASK_AGAIN_MS);
    return (await hoursOf(SLOW)) >= 2 && (await hoursOf(FAST)) >= 2;
  };
  await until('two hours of both nodes', TIMEOUT_MS, areMeasured);
  await monitor[Symbol.asyncDispose]();
  const ofCore = await lookUp('core', CORE);
  for (const column of ['base_latency', 'metrics_latency', 'aggregate_latency', 'file_download_latency'])
    assert.ok(
      ofCore[column]!.every((value) => value !== null && value > 0),
      column,
    );
  say('measured and looked up');

  const to = Math.floor(Date.now() / 1000) + 1;
  const publishers = [signer.address];
  const terms = {
    period: { from: to - 3_600, to },
    settings: { ...DEFAULT_SCORING_SETTINGS, hour_seconds: HOUR_SECONDS },
    publishers,
    versions: await readVersionTable({ coreUrl }, signer.address),
    registrations: undefined,
    tags: [],
  };
  const computed = await computeScoresOf({ coreUrl }, terms);
  const [ofFast, ofSlow] = computed.content.scores.crn;
  assert.deepEqual([ofFast!.node_id, ofSlow!.node_id], [FAST, SLOW]);
  assert.ok(ofFast!.total_score > ofSlow!.total_score);
  for (const score of [ofFast!, ofSlow!]) {
    const expected = scoreByHand(await lookUp('compute', score.node_id), to);
    assert.ok(Math.abs(score.total_score - expected) < 1e-9, `${score.total_score} is not ${expected}`);
  }
  const itemHash = await publishScores(core, computed);
  say('scored and published');

  // The other node gets the scores, their inputs, and the measurements but for one.
  const other = new CoreClient({ url: otherUrl, signer });
  assert.equal(await publishScores(other, computed).then((hash) => hash.length), 64);
  const verifyOn = async (url: string, hash: string) => {
    const { code, stdout, stderr } = await run(process.execPath, [
      SKERRY,
      '--core',
      url,
      '--json',
      'score',
      'verify',
      hash,
    ]);
    return { code, body: JSON.parse(stdout || stderr) };
  };
  const here = await verifyOn(coreUrl, itemHash);
  assert.deepEqual(
    [here.code, here.body.isSame, here.body.computed],
    [0, true, computed.content.scores_hash],
  );
  const theirs = (
    await requestJson<NetworkMessages>(`${otherUrl}/api/v0/messages.json?contentTypes=net-scoring-scores`)
  ).messages[0]!;
  const before = await verifyOn(otherUrl, String(theirs.item_hash));
  assert.deepEqual([before.code, before.body.isSame], [1, false]);
  assert.equal(before.body.missing.length, computed.content.inputs.metrics.count);
  await copyMetrics(coreUrl, otherUrl);
  const there = await verifyOn(otherUrl, String(theirs.item_hash));
  assert.deepEqual(
    [there.code, there.body.isSame, there.body.computed],
    [0, true, computed.content.scores_hash],
  );
  say('verified on the other node');

  const settings = JSON.stringify({ hour_seconds: HOUR_SECONDS });
  const explained = await run(process.execPath, [
    ...[
      SKERRY,
      '--core',
      otherUrl,
      'score',
      'explain',
      SLOW,
      '--publisher',
      signer.address,
      '--settings',
      settings,
    ],
  ]);
  // This node was not told of the version table, and says what that costs.
  assert.equal(explained.code, 0, explained.stderr);
  assert.match(explained.stdout, /version 7\.7\.7 does not count/);
});
