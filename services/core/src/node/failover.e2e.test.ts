import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withClient } from '@skerry/database';
import { startTcpStandby, startTcpTestServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { startNode } from '../testing/node.ts';
import { type Seen, WRITERS, write } from '../testing/outage.ts';

const BEFORE = 50;

/** `npm run soak -- failover` does it again and again, with Patroni. */
test('kill -9 of the primary under load, and its standby promoted: nothing acknowledged is lost', async (t) => {
  const log = createLogger('test', 'silent');
  const home = await mkdtemp(join(tmpdir(), 'skerry-failover-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  await using primary = await startTcpTestServer(log);
  await using standby = await startTcpStandby(log, primary);
  const ask = async <T extends object>({ url }: { url: string }, query: string, values: unknown[] = []) =>
    (await withClient({ connectionString: url }, (client) => client.query<T>(query, values))).rows;
  await ask(primary, "alter system set synchronous_standby_names = '*'");
  await ask(primary, 'select pg_reload_conf()');
  await until(
    'the standby has to confirm',
    () => ask<{ sync_state: string }>(primary, 'select sync_state from pg_stat_replication'),
    (rows) => rows[0]?.sync_state === 'sync',
  );
  const hosts = [primary, standby].map(({ url }) => new URL(url).host).join();
  const node = await startNode(join(home, 'node'), primary.url.replace(new URL(primary.url).host, hosts));
  t.after(() => node.end('SIGKILL'));
  const seen: Seen = { acknowledged: [], refused: [] };
  const stop = new AbortController();
  const writers = Array.from({ length: WRITERS }, (_, writer) => write(node.url, writer, seen, stop.signal));
  await until('the first answers', () => seen.acknowledged.length > BEFORE);

  process.kill(primary.pid, 'SIGKILL');
  await until('writers are refused', () => seen.refused.length > 0);
  const before = seen.acknowledged.length;
  await ask(standby, 'select pg_promote()');
  await until('service resumes by itself', () => seen.acknowledged.length > before + BEFORE);
  stop.abort();
  await Promise.all(writers);

  const codes = new Set(
    seen.refused.map(({ code, status, retryAfter }) => `${status} ${code} ${retryAfter}`),
  );
  assert.deepEqual([...codes], ['503 DATABASE_UNAVAILABLE 2']);
  const lost = await ask(
    standby,
    'select from unnest($1::text[]) as hash where not exists (select from messages where item_hash = hash)',
    [seen.acknowledged],
  );
  t.diagnostic(
    `${seen.acknowledged.length} acknowledged, ${seen.refused.length} refused, ${lost.length} lost`,
  );
  assert.equal(lost.length, 0);
});
