import type { MessageEventData } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { MessageStatus, Schema } from '../db/schema.ts';
import type { EventDraft } from '../events/append.ts';
import { numberShapes } from '../lists/shapes.ts';
import { writeLists } from '../lists/write.ts';
import { sumSteps } from '../state/message-set.ts';
import type { Accepted } from './accepted.ts';
import type { Judged } from './judged.ts';

const contentTextOf = ({ accepted: { message } }: Judged) =>
  message.content && JSON.stringify(message.content);

async function insertMessages(trx: Transaction<Schema>, judged: readonly Judged[]): Promise<void> {
  if (judged.length === 0) return;
  const column = <T>(read: (one: Judged) => T) => judged.map(read);
  const ofMessage = <T>(read: (message: Accepted['message']) => T) =>
    judged.map(({ accepted }) => read(accepted.message));
  // Tags go as JSON: an array of arrays must be a rectangle.
  await sql`
    insert into messages (item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", content_type,
      subject, tags, shape, content, source_text, signature, status, reason, decide_by_ms)
    select item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", content_type, subject,
      case when tags is null then '{}' else array(select jsonb_array_elements_text(tags)) end,
      shape, content, source_text, signature, status, reason, decide_by_ms
    from unnest(
      ${ofMessage((m) => m.itemHash)}::text[], ${ofMessage((m) => m.form)}::text[], ${ofMessage((m) => m.chain)}::text[],
      ${ofMessage((m) => m.sender)}::text[], ${ofMessage((m) => m.signedSender)}::text[],
      ${column(({ accepted }) => accepted.owner)}::text[], ${ofMessage((m) => m.type)}::text[],
      ${ofMessage((m) => m.channel)}::text[], ${ofMessage((m) => m.time)}::float8[],
      ${column(({ accepted }) => accepted.contentType)}::text[], ${column(({ accepted }) => accepted.subject)}::text[],
      ${column(({ accepted: { tags } }) => (tags.length === 0 ? null : JSON.stringify(tags)))}::jsonb[],
      ${column(({ shape }) => shape)}::integer[], ${column(contentTextOf)}::jsonb[],
      ${ofMessage((m) => m.sourceText)}::text[], ${ofMessage((m) => m.signature)}::text[],
      ${column(({ outcome }) => outcome.status)}::text[],
      ${column(({ outcome: { reason } }) => reason && JSON.stringify(reason))}::jsonb[],
      ${column(({ decideByMs }) => decideByMs)}::bigint[])
      as m (item_hash, form, chain, sender, signed_sender, owner, type, channel, "time", content_type, subject, tags,
        shape, content, source_text, signature, status, reason, decide_by_ms)`.execute(trx);
}

async function updateMessages(trx: Transaction<Schema>, judged: readonly Judged[]): Promise<void> {
  if (judged.length === 0) return;
  const column = <T>(read: (one: Judged) => T) => judged.map(read);
  // What is read from the content is written again: the content may have been a file that came only now, and an earlier
  // release may have read it otherwise.
  await sql`
    update messages m set status = t.status, reason = t.reason, shape = t.shape, owner = t.owner, subject = t.subject,
      content = t.content, "time" = t."time", content_type = t.content_type,
      tags = array(select jsonb_array_elements_text(t.tags))
    from unnest(
      ${column(({ accepted }) => accepted.message.itemHash)}::text[], ${column(({ outcome }) => outcome.status)}::text[],
      ${column(({ outcome: { reason } }) => reason && JSON.stringify(reason))}::jsonb[],
      ${column(({ shape }) => shape)}::integer[], ${column(({ accepted }) => accepted.owner)}::text[],
      ${column(({ accepted }) => accepted.subject)}::text[], ${column(contentTextOf)}::jsonb[],
      ${column(({ accepted }) => accepted.message.time)}::float8[],
      ${column(({ accepted }) => accepted.contentType)}::text[],
      ${column(({ accepted }) => JSON.stringify(accepted.tags))}::jsonb[])
      as t (item_hash, status, reason, shape, owner, subject, content, "time", content_type, tags)
    where m.item_hash = t.item_hash`.execute(trx);
}

async function writeDependencies(trx: Transaction<Schema>, judged: readonly Judged[]): Promise<void> {
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

const messageEventOf = ({ message, contentType }: Accepted): EventDraft => {
  const data: MessageEventData = {
    item_hash: message.itemHash,
    type: message.type,
    sender: message.sender,
    channel: message.channel,
    timestamp: Math.floor(message.time),
    content_type: contentType,
  };
  return { kind: 'message', data };
};

function statusEventsOf({ accepted, before, outcome }: Judged): EventDraft[] {
  if (isShown(outcome.status)) return [messageEventOf(accepted)];
  if (!isShown(before)) return [];
  const { status, reason } = outcome;
  return [{ kind: 'message_removed', data: { item_hash: accepted.message.itemHash, status, reason } }];
}

/** Writes the messages themselves, with what lists and digests keep of them. Gives the events that tell of it. */
export async function writeMessages(
  trx: Transaction<Schema>, changed: readonly Judged[]): Promise<EventDraft[]> {
  // A message counts as listed from the moment it is processed; only then its shape is numbered.
  const shown = changed.filter(({ outcome }) => isShown(outcome.status));
  const shapes = await numberShapes(
    trx,
    shown.map(({ accepted }) => accepted.message.content ?? {}),
  );
  const shapeOf = new Map(shown.map((one, index) => [one.accepted.message.itemHash, shapes[index]!]));
  const numbered = changed.map((one) => ({
    ...one,
    shape: shapeOf.get(one.accepted.message.itemHash) ?? one.shape,
  }));
  await insertMessages(
    trx,
    numbered.filter(({ before }) => before === null),
  );
  await updateMessages(
    trx,
    numbered.filter(({ before }) => before !== null),
  );
  await writeDependencies(trx, numbered);
  await writeLists(
    trx,
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
