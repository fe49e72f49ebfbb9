import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { createHttpLink } from '../../peers/sync/link.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { retryAfterMs } from './fetcher.ts';
import { TestDaemon } from './testing/daemon.ts';

const UNKNOWN = 'QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o';

async function wantOf(core: TestCore) {
  const row = await core.rooms.db.selectFrom('wanted_files').selectAll().executeTakeFirst();
  return row && { attempts: row.attempts, dueMs: row.due_ms };
}

test('M12: a CID that nobody has is asked for later and later, here and on a peer, and the log stays quiet', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  const ipfs = { gateways: [daemon.url] };
  const first = stack.use(await createTestCore({ log, ipfs }));
  const url = await first.listen();
  const peer = stack.use(await createTestCore({ log, ipfs, peers: [createHttpLink(url)] }));
  const pin = await first.send(
    signers.alice,
    { type: 'IPFS_PIN', channel: 'test', content: { hash: UNKNOWN } },
    '/ipfs/pin',
  );
  const store = await first.send(signers.alice, {
    type: 'STORE',
    channel: 'test',
    content: { item_type: 'ipfs', item_hash: UNKNOWN },
  });
  assert.deepEqual([pin.status, store.status], [202, 202]);
  assert.ok(await peer.rooms.sync.syncer.round(new AbortController().signal));
  for (const core of [first, peer]) {
    await until(
      'it was tried and put off',
      () => wantOf(core),
      (want) => (want?.attempts ?? 0) >= 2,
    );
    // Each try of the fetcher is one that the table knows of, or will in a moment.
    const { failed } = core.fetcher.counts;
    const want = (await wantOf(core))!;
    assert.ok(Number.isInteger(want.dueMs));
    assert.ok(failed <= want.attempts + 1, `${failed} tries, ${want.attempts} noted`);
    const { body } = await core.get(`/messages/${store.body.item_hash}/status`);
    assert.equal(body.status, 'pending');
  }
  assert.deepEqual(
    lines.filter((line) => /wanted|fetched/.test(line)),
    [],
  );
});

test('S1: a failure that cannot be noted in the table rests as well', async () => {
  await using stack = new AsyncDisposableStack();
  const daemon = stack.use(await TestDaemon.start());
  const lines: string[] = [];
  const log = createLogger('core', 'info', { write: (line: string) => void lines.push(line) });
  const core = stack.use(await createTestCore({ log, ipfs: { gateways: [daemon.url] } }));
  // Whatever the reason of the next fault of this sort will be.
  const { pool } = core.rooms.indexer;
  await pool.query('alter table wanted_files add check (attempts = 0)');
  const startMs = performance.now();
  await core.send(signers.alice, {
    type: 'STORE',
    channel: 'test',
    content: { item_type: 'ipfs', item_hash: UNKNOWN },
  });
  const { counts } = core.fetcher;
  await until(
    'it was tried three times',
    () => counts.failed,
    (failed) => failed >= 3,
  );
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs > 1_500, `three tries in ${Math.round(tookMs)} ms`);
  // It is said at every doubling of their number.
  const said = lines.filter((line) => line.includes('could not be recorded')).length;
  assert.ok(said <= 1 + Math.log2(counts.failed), lines.join(''));
  // Something else is fetched meanwhile.
  assert.equal((await core.get('/health')).status, 200);
});

test('S1: the time until the next try is whole, whatever the random number', () => {
  for (let attempts = 0; attempts < 40; attempts++)
    for (const random of [0, Number.MIN_VALUE, 1 / 3, Math.random(), 1 - Number.EPSILON]) {
      const ms = retryAfterMs(attempts, random);
      assert.ok(Number.isInteger(ms) && ms >= 100 && ms <= 300_100, `${attempts} ${random}: ${ms}`);
    }
});
