import type { MessageEventData, MessageStatus } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { CopyValue, Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import { storableJson } from '../db/values.ts';
import type { EventDraft } from '../events/append.ts';
import { numberShapes } from '../lists/shapes.ts';
import { writeLists } from '../lists/write.ts';
import { sumSteps } from '../state/message-set.ts';
import type { Accepted } from './accepted.ts';
import type { Judged } from './judged.ts';

const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** The columns of a message's row. */
const COLUMNS: Readonly<Record<string, (one: Judged) => CopyValue>> = {
  item_hash: ({ accepted }) => accepted.message.itemHash,
  form: ({ accepted }) => accepted.message.form,
  chain: ({ accepted }) => accepted.message.chain,
  sender: ({ accepted }) => accepted.message.sender,
  signed_sender: ({ accepted }) => accepted.message.signedSender ?? null,
  owner: ({ accepted }) => accepted.owner,
  type: ({ accepted }) => accepted.message.type,
  channel: ({ accepted }) => accepted.message.channel,
  time: ({ accepted }) => accepted.message.time,
  content_type: ({ accepted }) => accepted.contentType,
  subject: ({ accepted }) => accepted.subject,
  tags: ({ accepted }) => accepted.tags,
  shape: ({ shape }) => shape,
  content: ({ accepted }) => jsonOf(accepted.message.content),
  source_text: ({ accepted }) => accepted.message.sourceText,
  signature: ({ accepted }) => accepted.message.signature,
  status: ({ outcome }) => outcome.status,
  reason: ({ outcome }) => (outcome.reason === null ? null : storableJson(outcome.reason)),
  noted_ms: ({ accepted }) => accepted.message.notedMs ?? null,
  decide_by_ms: ({ decideByMs }) => decideByMs,
};
const NAMES = Object.keys(COLUMNS);
const READERS = Object.values(COLUMNS);
const OVERWRITTEN = [
  ...NAMES.filter((name) => name !== 'item_hash' && name !== 'decide_by_ms'),
  'settled_at_ms',
];

/**
 * Rows that are there already are written anew: what was read from the content may be read otherwise, as when the
 * content was a file that came only now, and a hash of the network form may have another sender's copy.
 */
async function rewriteRows({ trx, copy }: Writer<Schema>, rows: readonly CopyValue[][]): Promise<void> {
  const names = [...NAMES, 'settled_at_ms'];
  await sql`
    create temporary table if not exists rewritten on commit delete rows
    as select ${sql.join(names.map((name) => sql.ref(name)))} from messages with no data`.execute(trx);
  await copy('rewritten', names, rows);
  await sql`
    update messages m set ${sql.join(OVERWRITTEN.map((name) => sql`${sql.ref(name)} = ${sql.ref(`r.${name}`)}`))}
    from rewritten r where m.item_hash = r.item_hash`.execute(trx);
}

async function writeRows(writer: Writer<Schema>, judged: readonly Judged[], nowMs: number): Promise<void> {
  const rowOf = (one: Judged) => [...READERS.map((read) => read(one)), nowMs];
  const fresh = judged.filter(({ before }) => before === null).map(rowOf);
  const known = judged.filter(({ before }) => before !== null).map(rowOf);
  if (fresh.length > 0) await writer.copy('messages', [...NAMES, 'settled_at_ms'], fresh);
  if (known.length > 0) await rewriteRows(writer, known);
}

export async function writeDependencies(trx: Transaction<Schema>, judged: readonly Judged[]): Promise<void> {
  const rows = judged.flatMap(({ accepted, dependencies }) =>
    dependencies.map((key) => ({ key, itemHash: accepted.message.itemHash })),
  );
  if (rows.length === 0) return;
  await sql`
    insert into dependencies (key, item_hash)
    select * from unnest(${rows.map(({ key }) => key)}::text[], ${rows.map(({ itemHash }) => itemHash)}::text[])
    on conflict do nothing`.execute(trx);
}

const isShown = (status: MessageStatus | null) => status === 'processed';

const messageEventOf = ({ message, contentType, tags }: Accepted): EventDraft => {
  const data: MessageEventData = {
    item_hash: message.itemHash,
    type: message.type,
    sender: message.sender,
    channel: message.channel,
    timestamp: Math.floor(message.time),
    content_type: contentType,
    ...(tags.length > 0 ? { tags: [...tags] } : {}),
  };
  return { kind: 'message', data };
};

function statusEventsOf({ accepted, before, outcome, isRedated }: Judged): EventDraft[] {
  if (isShown(outcome.status)) return isRedated && isShown(before) ? [] : [messageEventOf(accepted)];
  if (!isShown(before)) return [];
  const { status, reason } = outcome;
  return [{ kind: 'message_removed', data: { item_hash: accepted.message.itemHash, status, reason } }];
}

/** Writes the messages themselves, with what lists and digests keep of them. Gives the events that tell of it. */
export async function writeMessages(
  writer: Writer<Schema>,
  changed: readonly Judged[],
  nowMs: number,
): Promise<EventDraft[]> {
  const { trx } = writer;
  // A message counts as listed from the moment it is processed; only then its shape is numbered.
  const shown = changed.filter(({ outcome }) => isShown(outcome.status));
  const shapes = await numberShapes(
    trx,
    shown.map(({ accepted: { message, contentType } }) => ({
      type: message.type,
      contentType,
      content: message.content ?? {},
    })),
  );
  const shapeOf = new Map(shown.map((one, index) => [one.accepted.message.itemHash, shapes[index]!]));
  const numbered = changed.map((one) => ({
    ...one,
    shape: shapeOf.get(one.accepted.message.itemHash) ?? one.shape,
  }));
  await writeRows(writer, numbered, nowMs);
  await writeDependencies(trx, numbered);
  await writeLists(
    writer,
    numbered
      .filter(({ before, outcome }) => isShown(before) !== isShown(outcome.status))
      .map(({ accepted, shape, outcome }) => ({ accepted, shape, shown: isShown(outcome.status) })),
  );
  await sumSteps(
    trx,
    numbered.map(({ accepted, before, outcome }) => ({
      itemHash: accepted.message.itemHash,
      from: before,
      to: outcome.status,
    })),
  );
  return numbered.flatMap(statusEventsOf);
}
