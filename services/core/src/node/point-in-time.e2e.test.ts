import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { call } from '@skerry/client';
import { withClient } from '@skerry/database';
import { clusterDirectoryOf, createTestDatabase, startArchivedServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { STATE_API } from '@skerry/protocol/api/core/state';
import type { Schema } from '../store/schema.ts';
import { MIGRATIONS } from '../testing/core.ts';
import { startNode } from '../testing/node.ts';
import { type Seen, WRITERS, write } from '../testing/outage.ts';

const MORE = 50;
const SETTINGS = {
  SKERRY_CORE_ALLOW_PRIVATE: 'yes',
  SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
  SKERRY_CORE_RATE_LIMITS: 'no',
};

/** Writers send until so many more are acknowledged. */
async function writeMore(url: string): Promise<readonly string[]> {
  const seen: Seen = { acknowledged: [], refused: [] };
  const stop = new AbortController();
  const writers = Array.from({ length: WRITERS }, (_, writer) => write(url, writer, seen, stop.signal));
  await until('more messages', () => seen.acknowledged.length > MORE);
  stop.abort();
  await Promise.all(writers);
  return seen.acknowledged;
}

async function digestOf(url: string) {
  const { cursor: _, ...digest } = await call(url, STATE_API.getStateDigest, {});
  return digest;
}

const agree = (...urls: string[]) =>
  until(
    'equal digests',
    () => Promise.all(urls.map(digestOf)),
    (digests) => new Set(digests.map((one) => JSON.stringify(one))).size === 1,
  );

/** `npm run soak -- restore` does it with pgBackRest, as docs/backup.md has it. */
test('a database that is restored to a moment has what came before it and nothing of later, and its peer has the rest', async (t) => {
  const log = createLogger('test', 'silent');
  const home = await mkdtemp(join(tmpdir(), 'skerry-moment-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const server = stack.use(await startArchivedServer(log));
  const ask = async <T extends object>(query: string, values: unknown[] = []) =>
    (await withClient({ connectionString: server.url }, (client) => client.query<T>(query, values))).rows;
  const start = async (name: string, databaseUrl: string, peers: string) => {
    const node = await startNode(join(home, name), databaseUrl, { ...SETTINGS, SKERRY_CORE_PEERS: peers });
    stack.defer(() => node.end('SIGKILL'));
    return node;
  };
  const node = await start('node', server.url, '');
  const before = [...(await writeMore(node.url))];
  await server.save();
  before.push(...(await writeMore(node.url)));
  const [{ time } = assert.fail()] = await ask<{ time: string }>('select clock_timestamp()::text as time');
  const after = await writeMore(node.url);
  const others = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const peer = await start('peer', others.url, node.url);
  await agree(node.url, peer.url);
  await node.end('SIGKILL');

  await server.restore(time);
  await until('it takes writes', async () => {
    const [row] = await ask<{ recovers: boolean }>('select pg_is_in_recovery() as recovers');
    return !row!.recovers;
  });
  const kept = await ask<{ item_hash: string }>('select item_hash from messages where item_hash = any($1)', [
    [...before, ...after],
  ]);
  assert.deepEqual(kept.map(({ item_hash }) => item_hash).sort(), before.sort());
  // As docs/backup.md has it: no reader gets another event by a number that it knows.
  await ask(
    'update event_counter set last_seq = greatest(last_seq + 1, (extract(epoch from now()) * 1000)::bigint)',
  );
  await agree((await start('node', server.url, peer.url)).url, peer.url);
  t.diagnostic(`${before.length} came before the moment, ${after.length} after it`);
});

const lastCursorOf = async (url: string) => Number((await call(url, STATE_API.getStateDigest, {})).cursor);

async function lossesOf(url: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return /^skerry_database_losses(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1];
}

test('a copy of its directory that is put back is told from the database as the node left it: numbers go on above all that were given', async () => {
  const log = createLogger('test', 'silent');
  const home = await mkdtemp(join(tmpdir(), 'skerry-copy-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  const start = async (peers: string) => {
    const node = await startNode(join(home, 'node'), undefined, { ...SETTINGS, SKERRY_CORE_PEERS: peers });
    stack.defer(() => node.end('SIGKILL'));
    return node;
  };
  const first = await start('');
  await writeMore(first.url);
  await first.end('SIGTERM');
  const cluster = await clusterDirectoryOf(join(home, 'node', 'data', 'core', 'postgres'));
  const saved = `${cluster}-saved`;
  // With its owner.
  await promisify(execFile)('cp', ['-a', cluster, saved]);

  const second = await start('');
  assert.equal(await lossesOf(second.url), '0', 'a start is no loss');
  await writeMore(second.url);
  const others = stack.use(await createTestDatabase<Schema>({ migrations: MIGRATIONS, log }));
  const peer = await startNode(join(home, 'peer'), others.url, {
    ...SETTINGS,
    SKERRY_CORE_PEERS: second.url,
  });
  stack.defer(() => peer.end('SIGKILL'));
  await agree(second.url, peer.url);
  const told = await lastCursorOf(second.url);
  await second.end('SIGTERM');

  await rm(cluster, { recursive: true });
  await rename(saved, cluster);
  const third = await start(peer.url);
  assert.equal(await lossesOf(third.url), '1');
  await agree(third.url, peer.url);
  const next = await lastCursorOf(third.url);
  assert.ok(next > told + 100_000, `${told} was told, and ${next} came next`);
  await third.end('SIGTERM');
  const last = await start(peer.url);
  assert.equal(await lossesOf(last.url), '0', 'it is told once');
});
