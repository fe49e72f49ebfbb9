import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BOUNDLESS, openPool } from '@skerry/database';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger, rateLimitsOf, readConfig, Since } from '@skerry/kit';
import { coreConfig } from '../config.ts';
import { createHealth } from '../node/health/health.ts';
import type { Role } from '../node/processes/roles.ts';
import { createHttpLink } from '../peers/sync/link.ts';
import type { Schema } from '../store/schema.ts';
import { createTestCore, instanceContent, signers, type TestCore } from '../testing/core.ts';

const STRANGER = '198.51.100.7';
const log = createLogger('test', 'silent');

async function flood(
  core: TestCore,
  url: string,
  count: number,
  remoteAddress = STRANGER,
): Promise<number[]> {
  const statuses: number[] = [];
  for (let n = 0; n < count; n++) statuses.push((await core.api.inject({ url, remoteAddress })).statusCode);
  return statuses;
}

const ALONE = {
  view: () => ({
    state: 'alone' as const,
    clock: { state: 'unknown' as const, offset_ms: null, clocks: 1 },
  }),
};

describe('limits of the core node', () => {
  test('a stranger is refused beyond 100 a minute, in our form; health answers always; loopback is exempt', async () => {
    await using core = await createTestCore();
    const statuses = await flood(core, '/api/v0/version', 120);
    assert.deepEqual([statuses.indexOf(429), statuses.filter((status) => status === 200).length], [100, 100]);
    assert.ok((await flood(core, '/health', 150)).every((status) => status === 200));
    assert.ok((await flood(core, '/api/v0/version', 150, '127.0.0.1')).every((status) => status === 200));
    assert.ok((await flood(core, '/api/v0/version', 1, '198.51.100.8')).every((status) => status === 200));
  });

  test('signed requests have a rate of their own, refused before the body is read', async () => {
    await using core = await createTestCore();
    await flood(core, '/api/v0/version', 101);
    const post = async () =>
      core.api.inject({
        method: 'POST',
        url: '/api/v0/messages',
        remoteAddress: STRANGER,
        headers: { 'content-type': 'application/json' },
        payload: '{',
      });
    const codes = [];
    for (let n = 0; n < 301; n++) codes.push((await post()).json<{ code: string }>().code);
    assert.deepEqual([codes[0], codes[299], codes[300]], ['INVALID_JSON', 'INVALID_JSON', 'RATE_LIMITED']);
  });

  test('a stream counts once, however long it is read', async () => {
    const limits = { ...rateLimitsOf(readConfig(coreConfig, {})), exempt: [] };
    const perMinute = { general: 2, authenticated: 100, heavy: 1 };
    await using core = await createTestCore({ settings: { limits: { ...limits, perMinute, now: () => 0 } } });
    const url = await core.api.listen({ host: '127.0.0.1', port: 0 });
    const stream = await fetch(`${url}/api/v0/events`, { headers: { accept: 'text/event-stream' } });
    for (let n = 0; n < 10; n++)
      await core.send(signers.alice, { type: 'POST', content: { type: 'note', content: n } });
    const second = await fetch(`${url}/api/v0/version`);
    const third = await fetch(`${url}/api/v0/version`);
    assert.deepEqual([stream.status, second.status, third.status], [200, 200, 429]);
    assert.match(await (await fetch(`${url}/health`)).text(), /"ok"/);
    core.stop();
    await stream.text();
  });

  test('all of it is a setting', async () => {
    const environment = {
      SKERRY_CORE_RATE_GENERAL: '7',
      SKERRY_CORE_RATE_EXEMPT: 'none',
      SKERRY_CORE_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8',
      SKERRY_CORE_RATE_LIMITS: 'no',
    };
    const limits = rateLimitsOf(readConfig(coreConfig, environment));
    assert.deepEqual(limits, {
      isEnabled: false,
      perMinute: { general: 7, authenticated: 300, heavy: 10 },
      trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
      exempt: [],
    });
    assert.throws(() => readConfig(coreConfig, { SKERRY_CORE_TRUSTED_PROXIES: 'proxy.local' }), {
      code: 'INVALID_CONFIG',
    });
  });
});

describe('metrics of the core node', () => {
  test('the deployed names, with what is known; and our own for Prometheus', async () => {
    await using core = await createTestCore();
    await core.send(signers.alice, { type: 'INSTANCE', content: instanceContent }, '/instances');
    await core.send(signers.alice, {
      type: 'STORE',
      content: { item_type: 'storage', item_hash: '0'.repeat(64) },
    });
    assert.equal((await core.post('/messages', '{')).status, 400);
    const json = (await core.api.inject({ url: '/metrics.json' })).json<Record<string, unknown>>();
    assert.deepEqual(
      [
        json.pyaleph_status_sync_messages_total,
        json.pyaleph_status_sync_permanent_files_total,
        json.pyaleph_status_sync_pending_messages_total,
        json.pyaleph_status_sync_pending_txs_total,
        json.pyaleph_status_chain_eth_height_remaining_total,
      ],
      [1, 0, 1, null, null],
    );
    assert.equal(Object.keys(json).length, 33);
    const answer = await core.api.inject({ url: '/metrics' });
    assert.match(String(answer.headers['content-type']), /^text\/plain; version=0\.0\.4/);
    for (const line of [
      /^pyaleph_status_sync_messages_total 1$/m,
      /^pyaleph_build_info\{version="[^"]+"\} 1$/m,
      /^skerry_pipeline_queue_length 0$/m,
      /^skerry_pipeline_messages_total\{status="processed"\} 1$/m,
      /^skerry_pipeline_messages_total\{status="pending"\} 1$/m,
      /^skerry_pipeline_batch_messages_count 2$/m,
      /^skerry_refusals_total\{code="INVALID_JSON"\} 1$/m,
      /^skerry_event_streams_open 0$/m,
      /^skerry_database_connections\{state="busy"\} \d+$/m,
    ])
      assert.match(answer.payload, line);
    assert.equal(answer.payload.includes('_pending_txs_'), false, 'what is not known is left out');
  });

  test('parts tell what they know; one that fails or hangs takes nothing from the others', async () => {
    await using core = await createTestCore();
    core.rooms.metrics.tell(() => ({ pyaleph_status_peers_total: 3 }));
    core.rooms.metrics.tell(async () => Promise.reject(new Error('away')));
    core.rooms.metrics.tell(() => ({
      pyaleph_status_chain_eth_height_reference_total: 90,
      pyaleph_status_chain_eth_last_committed_height: 100,
    }));
    const json = await core.rooms.metrics.json();
    assert.deepEqual(
      [
        json.pyaleph_status_peers_total,
        json.pyaleph_status_chain_eth_height_remaining_total,
        json.pyaleph_status_sync_messages_total,
      ],
      [3, 0, 0],
    );
  });

  test('many who ask at once cost one look at the database', async () => {
    await using core = await createTestCore();
    let asked = 0;
    core.rooms.metrics.tell(() => {
      asked++;
      return {};
    });
    await Promise.all(Array.from({ length: 50 }, () => core.api.inject({ url: '/metrics.json' })));
    assert.equal(asked, 1);
  });
});

describe('health of the core node', () => {
  test('well: every part says so', async () => {
    await using core = await createTestCore();
    const { status, body } = await core.get('/health');
    assert.deepEqual([status, body.status, body.checks.database], [200, 'ok', { status: 'ok' }]);
    assert.deepEqual(body.checks.pipeline, { status: 'ok', queued: 0 });
    assert.ok(body.checks.disk.free_bytes > 0);
  });

  test('stopping: 503, and why', async () => {
    await using core = await createTestCore();
    core.stop();
    const { status, body } = await core.get('/health');
    assert.deepEqual([status, body.status, body.reason], [503, 'unavailable', 'the node is stopping']);
  });

  test('a database that hangs or is away is said in time', async () => {
    await using database = await createTestDatabase<Schema>({ log });
    const pipeline = { queued: 0, queuedMax: 10, writingMs: 0 };
    const health = createHealth({
      db: database.kysely,
      writes: { refusal: undefined },
      pipeline,
      sync: ALONE,
      trust: { problem: () => undefined },
      reserve: BOUNDLESS,
      signal: new AbortController().signal,
      log,
      since: new Since(() => 7),
      timeoutMs: 50,
    });
    const clients = await Promise.all(Array.from({ length: 4 }, () => database.pool.connect()));
    try {
      // While all connections are taken, only the limit lets it answer.
      for (const { status, checks } of await Promise.all([health(), health()])) {
        assert.equal(status, 'unavailable');
        assert.deepEqual(checks.database, {
          status: 'unavailable',
          reason: 'the database did not answer within 50 ms',
          since_ms: 7,
        });
      }
    } finally {
      for (const client of clients) client.release();
    }
  });

  test('a database that takes no writes is said, while it answers reads', async () => {
    await using database = await createTestDatabase<Schema>({ log });
    await database.pool.query(`alter database ${database.name} set default_transaction_read_only = on`);
    await using readOnly = await openPool<Schema>({ connectionString: database.url }, { log });
    const { status, checks } = await createHealth({
      db: readOnly.kysely,
      writes: { refusal: undefined },
      pipeline: { queued: 0, queuedMax: 10, writingMs: 0 },
      sync: ALONE,
      trust: { problem: () => undefined },
      reserve: BOUNDLESS,
      signal: new AbortController().signal,
      log,
      since: new Since(() => 7),
    })();
    assert.deepEqual([status, checks.database.status], ['degraded', 'degraded']);
  });

  test('a process at which no messages come in compares with no peer, and is well without', async () => {
    const peers = [createHttpLink('http://127.0.0.1:9')];
    const peersOf = async (roles: readonly Role[]) => {
      await using core = await createTestCore({ peers, settings: { roles } });
      return (await core.get('/health')).body.checks.peers;
    };
    assert.equal((await peersOf(['answer', 'deliver'])).state, 'syncing');
    assert.deepEqual(await peersOf(['deliver', 'index']), { status: 'ok', state: 'alone' });
  });

  test('a file system that was not asked yet is a reason too', async () => {
    await using database = await createTestDatabase<Schema>({ log });
    const { status, checks } = await createHealth({
      db: database.kysely,
      writes: { refusal: undefined },
      pipeline: { queued: 0, queuedMax: 10, writingMs: 0 },
      sync: ALONE,
      trust: { problem: () => undefined },
      reserve: BOUNDLESS,
      signal: new AbortController().signal,
      log,
      since: new Since(() => 7),
    })();
    assert.deepEqual([status, checks.disk.free_bytes], ['degraded', null]);
  });
});
