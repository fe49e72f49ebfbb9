import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '@skerry/kit';
import { sql } from 'kysely';
import { createTestCore } from '../../../testing/core.ts';
import type { Endpoint } from '../endpoints.ts';
import { Settler } from './settler.ts';

const ENDPOINT: Endpoint = {
  number: 1,
  webhookId: 'one',
  url: new URL('https://example.org/'),
  events: ['message.new'],
  filters: {},
  concurrency: 8,
  status: 'active',
  behindSeq: null,
  failingSinceMs: null,
  holdUntilMs: 0,
  secrets: () => [],
};
const SEQS = [1, 2, 3];

test('outcomes of several turns are written by one statement, at once where the node stops', async () => {
  await using core = await createTestCore();
  const { db } = core.rooms;
  await sql`insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    select 1, seq, 'message.new', 0, 0 from unnest(${SEQS}::bigint[]) seq`.execute(db);
  // Each statement has a time of its own.
  let nowMs = 0;
  const settler = new Settler({
    ...{ db, now: () => ++nowMs, log: createLogger('core', 'fatal') },
    gather: (signal) => once(signal, 'abort'),
  });
  const readTimes = async () =>
    (
      await sql<{ settled_ms: number | null }>`select settled_ms from webhook_deliveries`.execute(db)
    ).rows.map((row) => row.settled_ms);
  for (const seq of SEQS) {
    const claimed = { webhook: 1, seq, attempts: 0, plannedMs: 0, leaseEndMs: 0 };
    settler.add(ENDPOINT, claimed, { ok: true, status: 204, durationMs: 1 }, { state: 'delivered' });
    await turn();
    assert.deepEqual(await readTimes(), [null, null, null]);
  }
  await settler.close();
  const [first, ...others] = await readTimes();
  assert.equal(typeof first, 'number');
  assert.deepEqual(others, [first, first]);
});
