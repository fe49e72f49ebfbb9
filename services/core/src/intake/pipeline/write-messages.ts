import { createHash } from 'node:crypto';
import type { CopyValue, Writer } from '@skerry/database';
import { type Rows, rowsFrom, storableJson } from '@skerry/database';
import type { MessageEventData, MessageStatus } from '@skerry/protocol';
import { sql, type Transaction } from 'kysely';
import type { EventDraft, EventWriter } from '../../notify/events/append.ts';
import { numberShapes } from '../../state/lists/shapes.ts';
import { countListed, type Listed, writeLists } from '../../state/lists/write.ts';
import type { Schema } from '../../store/schema.ts';
import type { Standing } from '../../store/write-lock.ts';
import type { Accepted } from '../accepted.ts';
import type { Decided } from './decided.ts';
import { ROW } from './row.ts';

/** The columns of a message's row. */
const COLUMNS: Readonly<Record<string, (one: Decided) => CopyValue>> = {
  ...ROW,
  erased: ({ erased }) => erased,
  status: ({ verdict }) => verdict.status,
  reason: ({ verdict }) => (verdict.reason === null ? null : storableJson(verdict.reason)),
  decide_by_ms: ({ decideByMs }) => decideByMs,
};
const NAMES = Object.keys(COLUMNS);
const READERS = Object.values(COLUMNS);
const OVERWRITTEN = [...NAMES.filter((name) => name !== 'item_hash'), 'settled_at_ms'];

/**
 * Where rows wait to be written anew. A pooler keeps sessions, and their temporary tables, beyond this process: a later release, with
 * other columns, has a table of its own.
 */
const REWRITTEN = `rewritten_${createHash('sha256').update(NAMES.join()).digest('hex').slice(0, 8)}`;

/** Rows that were written once in this transaction are not written again with the next ones. */
export const forgetRewritten = ({ trx }: Writer<Schema>) =>
  sql`delete from pg_temp.${sql.ref(REWRITTEN)}`.execute(trx);

/**
 * Rows that are there already are written anew: what was read from the content may be read otherwise, as when the
 * content was a file that came only now, and a hash of the network form may have another sender's copy.
 */
async function rewriteRows({ trx, copy }: Writer<Schema>, rows: Rows): Promise<void> {
  const names = [...NAMES, 'settled_at_ms'];
  await sql`
    create temporary table if not exists ${sql.ref(REWRITTEN)} on commit delete rows
    as select ${sql.join(names.map((name) => sql.ref(name)))} from messages with no data`.execute(trx);
  copy(REWRITTEN, names, rows);
  await sql`
    update messages m set ${sql.join(OVERWRITTEN.map((name) => sql`${sql.ref(name)} = ${sql.ref(`r.${name}`)}`))}
    from ${sql.ref(REWRITTEN)} r where m.item_hash = r.item_hash`.execute(trx);
}

async function writeRows(writer: Writer<Schema>, decided: readonly Decided[], nowMs: number): Promise<void> {
  const rowOf = (one: Decided) => {
    const row = READERS.map((read) => read(one));
    row.push(nowMs);
    return row;
  };
  const fresh = decided.filter(({ before }) => before === null);
  const known = decided.filter(({ before }) => before !== null);
  if (fresh.length > 0) writer.copy('messages', [...NAMES, 'settled_at_ms'], rowsFrom(fresh, rowOf));
  if (known.length > 0) await rewriteRows(writer, rowsFrom(known, rowOf));
}

export async function writeDependencies(
  trx: Transaction<Schema>,
  decided: readonly Decided[],
): Promise<void> {
  const rows = decided
    .filter(({ dependencies }) => dependencies.length > 0)
    .flatMap(({ accepted, dependencies }) =>
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

function statusEventOf({ accepted, before, verdict }: Decided): EventDraft | undefined {
  if (isShown(verdict.status)) return isShown(before) ? undefined : messageEventOf(accepted);
  if (!isShown(before)) return undefined;
  const { status, reason } = verdict;
  return { kind: 'message_removed', data: { item_hash: accepted.message.itemHash, status, reason } };
}

/** What lists lose and get. */
function listedOf(changed: readonly Decided[]): Listed[] {
  const listed: Listed[] = [];
  for (const { accepted, shape, before, verdict, tagsBefore } of changed) {
    const isNow = isShown(verdict.status);
    if (isShown(before) !== isNow) listed.push({ accepted, shape, shown: isNow });
    else if (tagsBefore) {
      listed.push({ accepted: { ...accepted, tags: tagsBefore }, shape, shown: false });
      listed.push({ accepted, shape, shown: true });
    }
  }
  return listed;
}

/** An amended post has the tags that it began with. */
async function retagPosts(trx: Transaction<Schema>, hashes: readonly string[]): Promise<void> {
  if (hashes.length === 0) return;
  await sql`
    update amended_posts p set tags = m.tags from messages m
    where m.item_hash = p.item_hash and p.item_hash = any(${hashes}::text[])`.execute(trx);
}

interface Surroundings {
  readonly standing: Pick<Standing, 'timeline'>;
  readonly events: EventWriter;
  readonly nowMs: number;
}

/** Writes the messages themselves, with what lists keep of them and the events that tell of it. */
export async function writeMessages(
  writer: Writer<Schema>,
  changed: readonly Decided[],
  { standing: { timeline }, events, nowMs }: Surroundings,
): Promise<void> {
  const { trx } = writer;
  // A message counts as listed from the moment it is processed; only then its shape is numbered.
  const shown = changed.filter(({ verdict }) => isShown(verdict.status));
  const shapes = await numberShapes(
    trx,
    shown.map(({ accepted }) => accepted.shapeKey),
    timeline,
  );
  // In its place: a copy of each, with one number more, is what two thousand messages need no second time.
  for (const [index, one] of shown.entries()) one.shape = shapes[index]!;
  const listed = listedOf(changed);
  const counting = countListed(trx, listed);
  await writeRows(writer, changed, nowMs);
  events.write(changed.map(statusEventOf).filter((event) => event !== undefined));
  await writeDependencies(trx, changed);
  await writeLists(writer, listed, counting);
  await retagPosts(
    trx,
    changed.filter(({ tagsBefore }) => tagsBefore).map(({ accepted }) => accepted.message.itemHash),
  );
}
