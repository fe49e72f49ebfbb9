import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type MessageDraft, type Signer, signMessage } from '@skerry/client';
import { LIMITS, verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { acceptMessage } from '../../intake/accept.ts';
import { createTestCore, instanceContent, MIGRATIONS, signers } from '../../testing/core.ts';

const { alice, credit } = signers;
const T0 = 1_700_000_000;

test('stops for lack of credit that came late are judged again by their own date, and none that came in time', async () => {
  await using core = await createTestCore();
  const { db, pipeline, intake } = core.rooms;
  const send = async (signer: Signer, type: string, content: unknown, at: number, lateSeconds: number) => {
    const draft = { type, content, channel: 'old', timestamp: T0 + at, nonce: `${at}` } as MessageDraft;
    const { body, itemHash } = signMessage(draft, signer);
    const message = verifySubmission(Buffer.from(body), T0 + at);
    const notedMs = (message.time + lateSeconds) * 1000;
    await intake.peer.keep([
      { accepted: acceptMessage(lateSeconds > 0 ? { ...message, notedMs } : message) },
    ]);
    await pipeline.idle();
    return itemHash;
  };
  const machine = await send(alice, 'INSTANCE', instanceContent, 1, 0);
  const stop = { instance_id: machine, action: 'stop' };
  const stops = [
    await send(credit, 'INSTANCE_CONTROL', stop, 25, 0),
    await send(credit, 'INSTANCE_CONTROL', stop, 26, 2 * LIMITS.lateSeconds),
    await send(alice, 'INSTANCE_CONTROL', stop, 27, 2 * LIMITS.lateSeconds),
  ];
  const statuses = () =>
    Promise.all(stops.map(async (hash) => (await core.get(`/messages/${hash}/status`)).body.status));
  assert.deepEqual(await statuses(), ['rejected', 'rejected', 'processed']);
  // What the rule before made of them: the owner's credit was used up as of their dates, and not any more when the second one came.
  await sql`update credit_derivation set enforcement = true`.execute(db);
  await sql`
    insert into credit_notices (item_hash, owner, state, credits, "time") values
      ('a', ${alice.address}, 'low', 0, ${T0 + 15}), ('b', ${alice.address}, 'exhausted', 0, ${T0 + 20}),
      ('c', ${alice.address}, 'ok', 0, ${T0 + 40})`.execute(db);
  await sql.raw(await readFile(join(MIGRATIONS, '051-stops-by-their-own-date.sql'), 'utf8')).execute(db);
  const { rows } = await sql<{ item_hash: string }>`select item_hash from reconsider`.execute(db);
  assert.deepEqual(
    rows.map((row) => row.item_hash),
    [stops[1]],
  );
  pipeline.resume();
  await pipeline.idle();
  assert.deepEqual(await statuses(), ['rejected', 'processed', 'processed']);
});
