import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MessageDraft } from '@skerry/client';
import { deriveFor } from '../peers/trust/testing/setup.ts';
import { createTestCore, signers, type TestCore } from '../testing/core.ts';

const NOW = 1_780_272_000;
const DAY = 86_400;
const NODE = 'ab'.repeat(32);
/** What a node says of itself is text like any other. */
const VERSION = '1.0.0 "ü\\\n';

const recordOf = (measuredAt: unknown, more: object = {}) => ({
  node_id: NODE,
  measured_at: measuredAt,
  base_latency: 0.25,
  ...more,
});

const draftOf = (
  metrics: object,
  own: { type?: string; channel?: string; timestamp?: number } = {},
): MessageDraft => ({
  type: 'POST',
  channel: own.channel ?? 'net-scoring',
  timestamp: own.timestamp ?? NOW - 60,
  content: { type: own.type ?? 'net-scoring-metrics', content: { version: '1.0', tags: [], metrics } },
});

describe('the metrics lookup', () => {
  let core: TestCore;
  before(async () => {
    core = await createTestCore({ now: () => NOW * 1000 });
  });
  after(() => core[Symbol.asyncDispose]());

  const lookUp = async (kind: string, query = '') =>
    (await core.get(`/${kind}/${NODE}/metrics${query}`)).body.metrics;
  const timesOf = async (query: string) => (await lookUp('compute', query)).measured_at;

  test('one object of parallel arrays, or rows', async () => {
    const { body: first } = await core.send(
      signers.monitor,
      draftOf({
        ccn: [recordOf(NOW - 100.5, { metrics_latency: 0.5, asn: 64_512, version: VERSION, txs_total: 3 })],
        crn: [
          recordOf(NOW - 90, { full_check_latency: '1', diagnostic_vm_ping_latency: 0.001 }),
          recordOf(undefined),
          { measured_at: 1 },
        ],
      }),
    );
    assert.deepEqual(await lookUp('core'), {
      item_hash: [first.item_hash],
      measured_at: [NOW - 100.5],
      base_latency: [0.25],
      base_latency_ipv4: [null],
      metrics_latency: [0.5],
      aggregate_latency: [null],
      file_download_latency: [null],
      txs_total: [3],
      pending_messages: [null],
      eth_height_remaining: [null],
      asn: [64_512],
      version: [VERSION],
    });
    assert.deepEqual(await lookUp('compute', '?format=rows'), [
      {
        item_hash: first.item_hash,
        measured_at: NOW - 90,
        base_latency: 0.25,
        diagnostic_vm_ping_latency: 0.001,
      },
    ]);
    const { status, body } = await core.get(`/core/${'0'.repeat(64)}/metrics`);
    assert.deepEqual([status, body.code], [404, 'NODE_NOT_FOUND']);
  });

  test('the window: two weeks, bounds inclusive, 0 is not given; either order', async () => {
    const times = [NOW - 30 * DAY, NOW - 14 * DAY - 1, NOW - 14 * DAY, NOW + 5];
    // By its other name.
    await core.send(
      signers.monitor,
      draftOf({ crn: times.map((time) => recordOf(time)) }, { type: 'net-network-metrics' }),
    );
    const recent = [NOW - 14 * DAY, NOW - 90, NOW + 5];
    assert.deepEqual(await timesOf(''), recent);
    assert.deepEqual(await timesOf('?start_date=0&end_date=0'), recent);
    assert.deepEqual(await timesOf('?sort=Descending'), recent.toReversed());
    assert.deepEqual(await timesOf(`?start_date=1&end_date=${NOW - 14 * DAY}`), times.slice(0, 3));
    assert.deepEqual(await timesOf(`?end_date=${NOW - 16 * DAY}`), [NOW - 30 * DAY]);
    assert.deepEqual(await timesOf(`?start_date=${NOW - 90}`), [NOW - 90, NOW + 5]);
  });

  test('measurements by strangers, or on other channels, are kept as messages and looked up by nobody', async () => {
    const before = await timesOf('?start_date=1');
    const stranger = await core.send(signers.alice, draftOf({ crn: [recordOf(NOW - 50)] }));
    const elsewhere = await core.send(
      signers.monitor,
      draftOf({ crn: [recordOf(NOW - 50)] }, { channel: 'other' }),
    );
    assert.deepEqual([stranger.status, elsewhere.status], [200, 200]);
    assert.deepEqual(await timesOf('?start_date=1'), before);
  });

  test('two measurements of one moment stay two; a forgotten message takes its own away', async () => {
    const draft = draftOf({ crn: [recordOf(NOW - 10), recordOf(NOW - 10, { base_latency: 1 })] });
    const { body } = await core.send(signers.monitor, draft);
    const { body: other } = await core.send(signers.monitor, draftOf({ crn: [recordOf(NOW - 10)] }));
    assert.deepEqual(await timesOf(`?start_date=${NOW - 20}&end_date=${NOW}`), [
      NOW - 10,
      NOW - 10,
      NOW - 10,
    ]);
    await core.send(signers.monitor, {
      type: 'FORGET',
      timestamp: NOW,
      content: { hashes: [body.item_hash] },
    });
    await core.rooms.pipeline.idle();
    const left = await lookUp('compute', `?start_date=${NOW - 20}&end_date=${NOW}`);
    assert.deepEqual(left.item_hash, [other.item_hash]);
  });

  test('its history: parts of equal length, with who answered and which versions were told', async () => {
    const node = 'cd'.repeat(32);
    const of = (measuredAt: number, more: object) => ({ ...recordOf(measuredAt, more), node_id: node });
    const today = Math.floor(NOW / DAY) * DAY;
    const rows = [
      of(today - 1, { version: '1.1.0', base_latency: 0.75 }),
      of(today - 2, { version: '1.0.0' }),
      of(today - 3, { base_latency: null }),
      of(today - 3 * DAY, { version: '1.0.0' }),
    ];
    await core.send(signers.monitor, draftOf({ crn: rows }));
    const { body } = await core.get(`/compute/${node}/metrics/history?count=3`);
    const yesterday = { measurements: 3, answered: 2, base_latency: 0.5, versions: ['1.0.0', '1.1.0'] };
    assert.deepEqual(body, {
      step: DAY,
      from: today - 2 * DAY,
      history: [{ start: today - DAY, ...yesterday }],
    });
    const minutes = await core.get(`/compute/${node}/metrics/history?step=60&count=400`);
    const minute = { start: today - 60, ...yesterday };
    // NOW is the first second of a day.
    assert.deepEqual(minutes.body.history, [minute]);
    const { status, body: none } = await core.get(`/core/${node}/metrics/history`);
    assert.deepEqual([status, none.code], [404, 'NODE_NOT_FOUND']);
  });

  test('a change of the trusted publishers is made up for', async () => {
    const all = await timesOf('?start_date=1');
    await deriveFor(core.rooms, { scoring_publishers: [signers.alice.address] });
    assert.deepEqual(await timesOf('?start_date=1'), [NOW - 50]);
    await deriveFor(core.rooms, { scoring_publishers: [signers.monitor.address] });
    assert.deepEqual(await timesOf('?start_date=1'), all);
  });
});
