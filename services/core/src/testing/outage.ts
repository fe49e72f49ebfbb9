import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { signMessage } from '@skerry/client';
import { startEmbeddedPostgres } from '@skerry/database';
import { urlOf } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { signers } from './core.ts';
import { startNode } from './node.ts';

export const WRITERS = 4;
/** Between two tries of a writer that was refused. */
const PAUSE_MS = 20;

/** What writers saw. */
export interface Seen {
  readonly acknowledged: string[];
  readonly refused: { writer: number; code: string; status: number; retryAfter: string | null }[];
}

export async function write(url: string, writer: number, seen: Seen, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const { body, itemHash } = signMessage(
      { type: 'POST', channel: 'outage', content: { type: 'note', content: n } },
      signers.alice,
    );
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/v0/messages`, { method: 'POST', headers, body });
    if (response.ok) seen.acknowledged.push(itemHash);
    else {
      const { code } = (await response.json()) as { code: string };
      const { status, headers } = response;
      seen.refused.push({ writer, code, status, retryAfter: headers.get('retry-after') });
      await delay(PAUSE_MS);
    }
  }
}

/** Stops the database server of a node under load, starts it again, and holds the node to what it promised. */
export async function surviveOutage(t: TestContext, outageMs: number): Promise<void> {
  const log = createLogger('test', 'silent');
  const home = await mkdtemp(join(tmpdir(), 'skerry-outage-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const dataDir = join(home, 'server');
  await using stack = new AsyncDisposableStack();
  let server = await startEmbeddedPostgres({ dataDir, log });
  stack.defer(() => server[Symbol.asyncDispose]());
  const url = urlOf(server.connection);
  const node = await startNode(join(home, 'node'), url);
  stack.defer(() => node.end('SIGKILL'));
  const seen: Seen = { acknowledged: [], refused: [] };
  const stop = new AbortController();
  const writers = Array.from({ length: WRITERS }, (_, writer) => write(node.url, writer, seen, stop.signal));
  const counts = () => ({ acknowledged: seen.acknowledged.length, refused: seen.refused.length });
  await until('the first answers', counts, ({ acknowledged }) => acknowledged > 50);

  await server[Symbol.asyncDispose]();
  const stoppedMs = Date.now();
  // What was committed before may still be on its way to its writer, who is refused only after that.
  await until(
    'every writer is refused',
    () => new Set(seen.refused.map(({ writer }) => writer)).size,
    (refused) => refused === WRITERS,
  );
  const before = seen.acknowledged.length;
  await delay(Math.max(0, stoppedMs + outageMs - Date.now()));
  await until('more refusals', counts, ({ refused }) => refused > 20);
  const read = await fetch(`${node.url}/api/v0/messages`);
  assert.deepEqual([read.status, read.headers.get('retry-after')], [503, '2']);
  const health = (await (await fetch(`${node.url}/health`)).json()) as {
    status: string;
    checks: { database: object };
  };
  assert.equal(health.status, 'unavailable');
  assert.equal(seen.acknowledged.length, before, 'nothing is acknowledged that cannot be kept');

  server = await startEmbeddedPostgres({ dataDir, log });
  const startedMs = Date.now();
  await until('service resumes by itself', counts, ({ acknowledged }) => acknowledged > before + 50);
  stop.abort();
  await Promise.all(writers);
  const codes = new Set(
    seen.refused.map(({ code, status, retryAfter }) => `${status} ${code} ${retryAfter}`),
  );
  assert.deepEqual([...codes], ['503 DATABASE_UNAVAILABLE 2']);
  const kept = new Set<string>();
  for (let cursor: string | null = ''; cursor !== null; ) {
    const answer = await fetch(`${node.url}/api/v0/messages?channels=outage&limit=100&cursor=${cursor}`);
    const body = (await answer.json()) as { messages: { item_hash: string }[]; next_cursor: string | null };
    for (const { item_hash } of body.messages) kept.add(item_hash);
    cursor = body.next_cursor;
  }
  const lost = seen.acknowledged.filter((hash) => !kept.has(hash));
  t.diagnostic(
    `away for ${startedMs - stoppedMs} ms: ${seen.acknowledged.length} acknowledged, ${seen.refused.length} refused, ${lost.length} lost`,
  );
  assert.deepEqual(lost, []);
}
