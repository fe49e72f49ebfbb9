import type { MessageEventData, MessageStatus } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { EventDraft } from '../events/append.ts';
import { numberShapes } from '../lists/shapes.ts';
import { writeLists } from '../lists/write.ts';
import { sumSteps } from '../state/message-set.ts';
import type { Accepted } from './accepted.ts';
import type { Judged } from './judged.ts';

const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** The columns of a message's row, with what `unnest` takes them as. Tags go as JSON: arrays of arrays are rectangles. */
const COLUMNS: Readonly<Record<string, [type: string, read: (one: Judged) => unknown]>> = {
  item_hash: ['text', ({ accepted }) => accepted.message.itemHash],
  form: ['text', ({ accepted }) => accepted.message.form],
  chain: ['text', ({ accepted }) => accepted.message.chain],
  sender: ['text', ({ accepted }) => accepted.message.sender],
  signed_sender: ['text', ({ accepted }) => accepted.message.signedSender ?? null],
  owner: ['text', ({ accepted }) => accepted.owner],
  type: ['text', ({ accepted }) => accepted.message.type],
  channel: ['text', ({ accepted }) => accepted.message.channel],
  time: ['float8', ({ accepted }) => accepted.message.time],
  content_type: ['text', ({ accepted }) => accepted.contentType],
  subject: ['text', ({ accepted }) => accepted.subject],
  tags: ['jsonb', ({ accepted }) => (accepted.tags.length === 0 ? null : jsonOf(accepted.tags))],
  shape: ['integer', ({ shape }) => shape],
  content: ['jsonb', ({ accepted }) => jsonOf(accepted.message.content)],
  source_text: ['text', ({ accepted }) => accepted.message.sourceText],
  signature: ['text', ({ accepted }) => accepted.message.signature],
  status: ['text', ({ outcome }) => outcome.status],
  reason: ['jsonb', ({ outcome }) => jsonOf(outcome.reason)],
  decide_by_ms: ['bigint', ({ decideByMs }) => decideByMs],
};

const NAMES = Object.keys(COLUMNS);
const refs = (names: readonly string[]) => sql.join(names.map((name) => sql.ref(name)));
const TAGS = sql`case when tags is null then '{}' else array(select jsonb_array_elements_text(tags)) end`;

/**
 * Writes the rows. One that is there already is written anew: what was read from its content may be read otherwise, as
 * when the content was a file that came only now, and a hash of the network form may have another sender's copy.
 */
async function writeRows(trx: Transaction<Schema>, judged: readonly Judged[], nowMs: number): Promise<void> {
  const values = Object.values(COLUMNS).map(([type, read]) => sql`${judged.map(read)}::${sql.raw(type)}[]`);
  const overwritten = NAMES.filter((name) => name !== 'item_hash' && name !== 'decide_by_ms');
  await sql`
    insert into messages (${refs(NAMES)}, settled_at_ms)
    select ${sql.join(NAMES.map((name) => (name === 'tags' ? TAGS : sql.ref(name))))}, ${nowMs}::bigint
    from unnest(${sql.join(values)}) as m (${refs(NAMES)})
    on conflict (item_hash) do update set
      ${sql.join([...overwritten, 'settled_at_ms'].map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`))}`.execute(
    trx,
  );
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
  trx: Transaction<Schema>,
  changed: readonly Judged[],
  nowMs: number,
): Promise<EventDraft[]> {
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
  await writeRows(trx, numbered, nowMs);
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
