import { storableJson } from '@skerry/database';
import type { ErrorCode } from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import { fileKey, fileKeyOf } from '../dependency-keys.ts';
import type { Schema, VerdictReason } from '../schema.ts';

/** Reasons that a file would change: a message that has one lacks it, whether it is pending or was rejected at the end of its time. */
export const LACKED_CODES: readonly ErrorCode[] = ['FILE_NOT_FOUND', 'CONTENT_NOT_FOUND'];

/**
 * Files that pending messages lack (table `wanted_files`). A file is wanted from the transaction in which a message
 * begins to lack it until it is here or nobody waits for it any more: no crash loses one.
 */

export async function wantFiles(
  trx: Transaction<Schema>,
  hashes: readonly string[],
  nowMs: number,
): Promise<void> {
  if (hashes.length === 0) return;
  await sql`insert into wanted_files (hash, due_ms) select hash, ${nowMs} from unnest(${hashes}::text[]) as hash
    on conflict do nothing`.execute(trx);
}

/** Files that messages wait for no longer, such as those that were forgotten, unless others do. */
export async function dropWants(trx: Transaction<Schema>, hashes: readonly string[]): Promise<void> {
  if (hashes.length === 0) return;
  await sql`
    delete from wanted_files w where w.hash = any(${hashes}::text[]) and not exists (
      select from dependencies d join messages m using (item_hash)
      where d.key = ${fileKeyOf('w.hash')} and m.status = 'pending')`.execute(trx);
}

export interface WantedFile {
  readonly hash: string;
  readonly attempts: number;
}

/** `again`: of which a try was in vain. */
export type WantedSort = 'new' | 'again';

export interface Due {
  /** Milliseconds. */
  readonly nowMs: number;
  /** Milliseconds. What is put off for longer is due: the clock has been set back since. */
  readonly postponedMaxMs: number;
  /** Both where left out. */
  readonly sorts?: readonly WantedSort[];
  /** Whether tries count as turns; they do where left out. */
  readonly by?: 'tries' | 'lot';
  /** Left out: of all senders. Else of those alone who keep a file here by a message that was there by then, in Unix seconds. */
  readonly keepersSince?: number | undefined;
}

/** Files of a sender that are looked at for one that it has kept for long enough. */
const KEPT_LOOKED_AT = 4;

/** Whether a sender keeps a file here since then, as far as its first ones say. @param sender a column */
const isKeeper = (sender: string, sinceSeconds: number) => sql`exists (
  select from (select message_hash from file_pins where owner = ${sql.ref(sender)} limit ${sql.lit(KEPT_LOOKED_AT)}) p
  join messages k on k.item_hash = p.message_hash
  where coalesce(k.noted_ms / 1000.0, k."time") <= ${sinceSeconds})`;

export const sortOf = ({ attempts }: WantedFile): WantedSort => (attempts === 0 ? 'new' : 'again');

/**
 * Those that are due. Senders take turns, and every try of a file that one still waits for counts as its turn, also the one under way:
 * however many files one of them names, only its own wait for it, even where there is room for one at a time. By lot no try counts: of
 * each sender one file that is new and one that is not are as good as anybody's, or keys that nobody used before, which are free, would
 * always be before one that had to wait. Of a sender's files the longest due is first. Equals come in any order: a queue, however long it
 * is, leaves those behind it their chance.
 * @param except what is under way
 */
export async function listDue(
  db: Kysely<Schema>,
  { nowMs, postponedMaxMs, sorts = ['new', 'again'], by = 'tries', keepersSince }: Due,
  limit: number,
  except: readonly string[],
): Promise<WantedFile[]> {
  const isDue = sql`(due_ms <= ${nowMs} or due_ms > ${nowMs + postponedMaxMs})
    and case when attempts = 0 then 'new' else 'again' end = any(${sorts}::text[])`;
  // Asked twice a second. Mostly nothing is due, and to plan the turns costs more than all else that an idle node asks.
  const { rows: some } = await sql`
    select from wanted_files where ${isDue} and hash <> all(${except}::text[]) limit 1`.execute(db);
  if (some.length === 0) return [];
  const { rows } = await sql<WantedFile>`
    with wanted as (
      select hash, attempts, due_ms, hash = any(${except}::text[]) as is_begun, ${isDue} as is_due from wanted_files),
    waiting as (
      select distinct w.hash, w.due_ms, w.attempts = 0 as is_new, w.is_due and not w.is_begun as is_ready, m.sender,
        case when ${by === 'lot'} then 0 else w.attempts + w.is_begun::int end as tries
      from wanted w join dependencies d on d.key = ${fileKeyOf('w.hash')} join messages m using (item_hash)
      where m.status = 'pending' ${keepersSince === undefined ? sql`` : sql`and ${isKeeper('m.sender', keepersSince)}`}),
    turns as (
      select hash, sum(tries) over (partition by sender)
        + row_number() over (partition by sender, is_new order by is_ready desc, due_ms, hash) as turn from waiting)
    select w.hash, w.attempts from wanted w left join turns using (hash)
    where w.is_due and not w.is_begun and (${keepersSince === undefined} or turns.turn is not null)
    group by w.hash, w.attempts
    order by coalesce(min(turns.turn), 0), random() limit ${limit}`.execute(db);
  return rows;
}

/** Those of these files that no message lacks any more, also none that was rejected for want of it or erased (missed.ts). */
export async function listUnlacked(db: Kysely<Schema>, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const { rows } = await sql<{ hash: string }>`
    select hash from unnest(${hashes}::text[]) as hash where not exists (
      select from dependencies d join messages m using (item_hash)
      where d.key = ${fileKeyOf('hash')} and (m.status = 'pending' or m.erased = 'wanted' and m.item_hash = hash
        or m.status = 'rejected' and m.reason ->> 'code' = any(${LACKED_CODES}::text[])))`.execute(db);
  return rows.map(({ hash }) => hash);
}

/** Whether a pending message still waits for the file. */
export async function isAwaited(db: Kysely<Schema>, hash: string): Promise<boolean> {
  const { rows } = await sql`
    select from dependencies d join messages m using (item_hash)
    where d.key = ${fileKey(hash)} and m.status = 'pending' limit 1`.execute(db);
  return rows.length > 0;
}

export async function endWant(db: Kysely<Schema>, hash: string): Promise<void> {
  await db.deleteFrom('wanted_files').where('hash', '=', hash).execute();
}

export async function postponeWant(
  db: Kysely<Schema>,
  hash: string,
  dueMs: number,
  reason: VerdictReason,
): Promise<void> {
  await sql`update wanted_files set attempts = attempts + 1, due_ms = ${dueMs}, reason = ${storableJson(reason)}
    where hash = ${hash}`.execute(db);
}
