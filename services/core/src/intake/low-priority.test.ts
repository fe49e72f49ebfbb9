import assert from 'node:assert/strict';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createTestCore, signers } from '../testing/core.ts';

const MESSAGES = 8;

test('messages that one batch wrote are answered one after another: who reads waits for one of them, not for all', async () => {
  await using core = await createTestCore();
  const bodies = Array.from({ length: MESSAGES }, (_, n) =>
    Buffer.from(signMessage({ type: 'POST', content: { type: 'note', content: n } }, signers.alice).body),
  );
  /** How many were answered by each turn of the event loop. */
  const seen: number[] = [];
  let answered = 0;
  let isOver = false;
  const look = () => {
    seen.push(answered);
    // Somebody reads all the while, however long it takes here.
    core.rooms.intake.client.noteReader();
    if (!isOver) setImmediate(look);
  };
  look();
  await Promise.all(
    bodies.map(async (body) => {
      await core.rooms.intake.client.submit(body);
      answered++;
    }),
  );
  isOver = true;
  seen.push(answered);
  assert.equal(answered, MESSAGES);
  const most = Math.max(...seen.map((count, at) => count - (seen[at - 1] ?? 0)));
  assert.equal(most, 1, `${seen.filter((count, at) => count !== seen[at - 1])}`);
});

test('who reads messages counts as a reader; who looks at the health of the node does not', async () => {
  await using core = await createTestCore();
  let readers = 0;
  Object.assign(core.rooms.intake.client, { noteReader: () => readers++ });
  assert.equal((await core.get('/messages')).status, 200);
  assert.equal(readers, 1);
  assert.equal((await core.api.inject('/health')).statusCode, 200);
  assert.equal(readers, 1);
});
