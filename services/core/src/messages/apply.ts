import { AppError, type MessageEventData, type VerifiedMessage } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { appendEvents, type EventDraft, lockEvents } from '../events/append.ts';
import { rowOf } from '../instances/rows.ts';
import { viewOf } from '../instances/view.ts';
import type { Accepted, Change, UploadedFile } from './accepted.ts';
import { type BatchFacts, loadFacts } from './facts.ts';

/** What became of each message of a batch, in the batch's order: applied (now or earlier), or refused with a reason. */
export type Verdict = { readonly applied: true } | { readonly applied: false; readonly error: AppError };

interface Decided {
  readonly accepted: Accepted;
  readonly changes: readonly Change[];
}

const eventOf = ({ message, postType }: Accepted): EventDraft => {
  const data: MessageEventData = {
    item_hash: message.itemHash,
    type: message.type,
    sender: message.sender,
    channel: message.channel,
    timestamp: message.timestamp,
    content_type: postType,
  };
  return { kind: 'message', data };
};

async function findKnown(trx: Transaction<Schema>, batch: readonly Accepted[]): Promise<Set<string>> {
  const hashes = batch.map((one) => one.message.itemHash as string);
  const rows = await sql<{
    item_hash: string;
  }>`select item_hash from messages where item_hash = any(${hashes})`.execute(trx);
  return new Set(rows.rows.map((row) => row.item_hash));
}

/** Decides the batch one message after another, each seeing what those before it changed. */
function decideBatch(
  batch: readonly Accepted[],
  known: Set<string>,
  facts: BatchFacts,
): { verdicts: Verdict[]; decided: Decided[] } {
  const decided: Decided[] = [];
  const verdicts = batch.map((accepted): Verdict => {
    if (known.has(accepted.message.itemHash)) return { applied: true };
    try {
      const changes = accepted.decide(facts);
      facts.note(accepted, changes);
      known.add(accepted.message.itemHash);
      decided.push({ accepted, changes });
      return { applied: true };
    } catch (error) {
      if (error instanceof AppError) return { applied: false, error };
      throw error;
    }
  });
  return { verdicts, decided };
}

async function insertMessages(trx: Transaction<Schema>, decided: readonly Decided[]): Promise<void> {
  const column = <T>(read: (message: VerifiedMessage, postType: string | null) => T) =>
    decided.map(({ accepted }) => read(accepted.message, accepted.postType));
  await sql`
    insert into messages (item_hash, chain, sender, type, channel, "timestamp", post_type, content, signed_text, signature)
    select * from unnest(
      ${column((m) => m.itemHash)}::text[], ${column((m) => m.chain)}::text[], ${column((m) => m.sender)}::text[],
      ${column((m) => m.type)}::text[], ${column((m) => m.channel)}::text[], ${column((m) => m.timestamp)}::bigint[],
      ${column((_m, postType) => postType)}::text[], ${column((m) => JSON.stringify(m.content))}::jsonb[],
      ${column((m) => m.signedText)}::text[], ${column((m) => m.signature)}::text[])`.execute(trx);
}

async function writeChanges(trx: Transaction<Schema>, decided: readonly Decided[]): Promise<void> {
  // The last state of each instance is the one to keep; the map remembers only that.
  const states = new Map<string, Extract<Change, { kind: 'instance' }>['state']>();
  const files: UploadedFile[] = [];
  const pins: Schema['file_pins'][] = [];
  for (const { accepted, changes } of decided) {
    for (const change of changes) {
      if (change.kind === 'instance') states.set(change.state.instanceId, change.state);
      else if (change.kind === 'file') files.push(change.file);
      else
        pins.push({
          file_hash: change.fileHash,
          message_hash: accepted.message.itemHash,
          owner: accepted.message.sender,
        });
    }
  }
  if (states.size > 0) {
    const rows = [...states.values()].map(rowOf);
    const columns = Object.keys(rows[0]!).filter(
      (name) => name !== 'instance_id',
    ) as (keyof (typeof rows)[0])[];
    await trx
      .insertInto('instances')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .column('instance_id')
          .doUpdateSet((eb) => Object.fromEntries(columns.map((name) => [name, eb.ref(`excluded.${name}`)]))),
      )
      .execute();
  }
  if (files.length > 0) {
    const rows = files.map(({ hash, sizeBytes, contentType }) => ({
      hash,
      size_bytes: sizeBytes,
      content_type: contentType,
    }));
    await trx
      .insertInto('files')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  if (pins.length > 0)
    await trx
      .insertInto('file_pins')
      .values(pins)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
}

const eventsOf = ({ accepted, changes }: Decided): EventDraft[] => [
  eventOf(accepted),
  ...changes.flatMap((change): EventDraft[] =>
    change.kind === 'instance' ? [{ kind: 'instance', data: viewOf(change.state) }] : [],
  ),
];

/** Decides and writes a batch in one transaction: message rows, their effects, and the events that tell of them. */
export async function applyBatch(
  db: Kysely<Schema>,
  batch: readonly Accepted[],
  schedulers: ReadonlySet<string>,
  nowMs: number,
): Promise<Verdict[]> {
  return db.transaction().execute(async (trx) => {
    const lastSeq = await lockEvents(trx);
    const known = await findKnown(trx, batch);
    const facts = await loadFacts(trx, batch, schedulers);
    const { verdicts, decided } = decideBatch(batch, known, facts);
    if (decided.length > 0) {
      await insertMessages(trx, decided);
      await writeChanges(trx, decided);
      await appendEvents(trx, lastSeq, decided.flatMap(eventsOf), nowMs);
    }
    return verdicts;
  });
}
