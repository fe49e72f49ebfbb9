import { LIMITS } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import { columnsFor, type Row } from '../../state/lists/matcher.ts';
import type { PropertyName } from '../../state/lists/properties.ts';
import { SHOWN_COLUMNS } from '../../state/messages/columns.ts';
import { type Confirmations, loadConfirmations } from '../../state/messages/confirmations.ts';
import type { Schema } from '../../store/schema.ts';

/** Events that are read at a time. */
const EVENTS_MAX = 512;
/** Text of messages, and of files that are contents, that is read at a time; a longer message comes alone. */
const BYTES_MAX = 8 * 1024 * 1024;

/** Messages that came into force. */
export interface Due {
  /** The last event that was looked at. */
  readonly seq: number;
  /** In the order of their events. */
  readonly messages: readonly { readonly seq: number; readonly row: Row }[];
  readonly confirmations: Confirmations;
}

interface Told {
  readonly seq: number;
  /** null: it tells of something else. */
  readonly item_hash: string | null;
  readonly bytes: number;
}

async function listTold(db: Kysely<Schema>, after: number): Promise<Told[]> {
  const { rows } = await sql<Told>`
    select e.seq, m.item_hash, case when m.content is null then 0 else coalesce(octet_length(m.source_text),
      (select f.size_bytes from files f where f.hash = m.item_hash), ${LIMITS.contentFileBytes}) end as bytes
    from events e left join messages m on e.kind = 'message' and m.item_hash = e.data ->> 'item_hash'
    where e.seq > ${after} order by e.seq limit ${EVENTS_MAX}`.execute(db);
  let bytes = 0;
  const end = rows.findIndex((one, index) => {
    bytes += one.bytes;
    return index > 0 && bytes > BYTES_MAX;
  });
  return end === -1 ? rows : rows.slice(0, end);
}

/**
 * What comes after an event; undefined: nothing does. What is not in force any more is left out.
 * @param made properties that the rows are wanted with
 */
export async function readDue(
  db: Kysely<Schema>,
  after: number,
  made: readonly PropertyName[],
): Promise<Due | undefined> {
  const told = await listTold(db, after);
  const last = told.at(-1);
  if (!last) return undefined;
  const hashes = told.flatMap(({ item_hash }) => item_hash ?? []);
  if (hashes.length === 0) return { seq: last.seq, messages: [], confirmations: new Map() };
  const columns = sql.join([SHOWN_COLUMNS, ...columnsFor(made)]);
  const { rows } = await sql<StoredMessage>`
    select ${columns} from messages m
    where m.item_hash = any(${hashes}::text[]) and m.status = 'processed'`.execute(db);
  const byHash = new Map(rows.map((row) => [row.item_hash, row as Row]));
  return {
    seq: last.seq,
    messages: told.flatMap(({ seq, item_hash }) => {
      const row = item_hash === null ? undefined : byHash.get(item_hash);
      return row ? [{ seq, row }] : [];
    }),
    confirmations: await loadConfirmations(db, rows),
  };
}
