import { verifySubmission } from '@skerry/protocol';
import { sql } from 'kysely';
import { acceptMessage } from '../intake/accept.ts';
import { digestState } from '../state/digest.ts';
import { clearMessages } from './clear.ts';
import type { TestCore } from './core.ts';

/** A signed message, and when a node had it first, where it came late. */
export interface Sent {
  readonly body: string;
  readonly itemHash: string;
  readonly notedMs?: number;
}

/** Messages come together, as a peer brings them. Resolves when they are durable: what hangs on them may be decided later. */
export async function arrive({ rooms: { intake } }: TestCore, sent: readonly Sent[]): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  await Promise.all(
    sent.map(({ body, notedMs }) => {
      const message = { ...verifySubmission(body, now), ...(notedMs === undefined ? {} : { notedMs }) };
      return intake.peer.keep([{ accepted: acceptMessage(message) }]);
    }),
  );
}

/** What is kept once nothing is left to decide: the digest of everything derived, and what became of each message. */
export async function lookAt({ rooms: { db, pipeline } }: TestCore) {
  await pipeline.idle();
  const { cursor: _cursor, ...digest } = await digestState(db);
  const { rows: messages } = await sql<{ item_hash: string; status: string; content_type: string | null }>`
    select item_hash, status, content_type from messages order by item_hash`.execute(db);
  // Labels that many messages have come and go by how many there were at once.
  const { rows: totals } = await sql<object>`
    select a, b, total from totals where a not like 'k:%' and b not like 'k:%' and total <> 0 order by a, b`.execute(
    db,
  );
  const { rows: tags } = await sql<object>`
    select item_hash, tag, type, sender, channel, "time" from message_tags order by item_hash, tag`.execute(
    db,
  );
  return { digest, messages, totals, tags };
}

/** How messages come: in these batches, each as indexes of what was sent. */
export type Batches = readonly (readonly number[])[];

/** What is kept of messages that come so to a node that had none. */
export async function lookAfter(core: TestCore, sent: readonly Sent[], batches: Batches) {
  await clearMessages(core);
  for (const batch of batches)
    await arrive(
      core,
      batch.map((index) => sent[index]!),
    );
  return lookAt(core);
}
