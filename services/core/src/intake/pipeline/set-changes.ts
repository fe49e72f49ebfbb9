import { bytesToHex, isItemHash64, SYNC_ID_BYTES, type SyncKey } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { BEGINNING, type SetChange, type SetPlace } from './set-place.ts';
import type { Move } from './statement.ts';

const KEY_BYTES = 8 + SYNC_ID_BYTES;
const HASH_BYTES = 32;
const HAS_FROM = 1;
const HAS_NAME = 2;
const HAS_NO_TO = 4;

function writeKey(bytes: Buffer, at: number, { time, id }: SyncKey): number {
  bytes.writeDoubleBE(time, at);
  bytes.set(id, at + 8);
  return at + KEY_BYTES;
}

const readKey = (bytes: Buffer, at: number): SyncKey => ({
  time: bytes.readDoubleBE(at),
  id: new Uint8Array(bytes.subarray(at + 8, at + KEY_BYTES)),
});

/**
 * Moves as bytes, one after another: flags (1), the new key and the old one where there are such (44 each), and of a message that is
 * named by a CID the length of the name (2) and the name.
 */
export function encodeMoves(moves: readonly Move[]): Buffer {
  const names = moves.map(({ itemHash }) => (isItemHash64(itemHash) ? undefined : Buffer.from(itemHash)));
  const size = moves.reduce(
    (sum, { from, to }, index) =>
      sum + 1 + (to ? KEY_BYTES : 0) + (from ? KEY_BYTES : 0) + (names[index] ? 2 + names[index].length : 0),
    0,
  );
  const bytes = Buffer.alloc(size);
  let at = 0;
  for (const [index, { from, to }] of moves.entries()) {
    const name = names[index];
    const flags = (from ? HAS_FROM : 0) | (name ? HAS_NAME : 0) | (to ? 0 : HAS_NO_TO);
    at = bytes.writeUInt8(flags, at);
    if (to) at = writeKey(bytes, at, to);
    if (from) at = writeKey(bytes, at, from);
    if (name) {
      at = bytes.writeUInt16BE(name.length, at);
      at += name.copy(bytes, at);
    }
  }
  return bytes;
}

/** The inverse of `encodeMoves`. Throws a RangeError where the bytes end too early: nobody but a node of this code writes them. */
export function decodeMoves(bytes: Buffer): Move[] {
  const moves: Move[] = [];
  for (let at = 0; at < bytes.length; ) {
    const flags = bytes.readUInt8(at++);
    const to = flags & HAS_NO_TO ? null : readKey(bytes, at);
    if (to) at += KEY_BYTES;
    const from = flags & HAS_FROM ? readKey(bytes, at) : null;
    if (from) at += KEY_BYTES;
    let itemHash = bytesToHex((to ?? from)?.id.subarray(0, HASH_BYTES) ?? new Uint8Array());
    if (flags & HAS_NAME) {
      const length = bytes.readUInt16BE(at);
      itemHash = bytes.toString('utf8', at + 2, at + 2 + length);
      at += 2 + length;
    }
    moves.push({ itemHash, from, to });
  }
  return moves;
}

/** What a batch moved, as bytes: of all messages, and of those that are forgotten, where one of them moved. */
export interface PackedMoves {
  readonly all: Buffer;
  readonly forgotten: Buffer | null;
}

/** Undefined: there is none. */
export function packMoves(moves: readonly Move[]): PackedMoves | undefined {
  if (moves.length === 0) return undefined;
  const forgotten = moves.filter((move) => move.isOfForgotten);
  if (forgotten.length === 0) return { all: encodeMoves(moves), forgotten: null };
  return { all: encodeMoves(moves.filter((move) => !move.isOfForgotten)), forgotten: encodeMoves(forgotten) };
}

const unpackMoves = ({ all, forgotten }: PackedMoves): Move[] => [
  ...decodeMoves(all),
  ...(forgotten ? decodeMoves(forgotten).map((move) => ({ ...move, isOfForgotten: true as const })) : []),
];

/**
 * Writes the row of a batch. The caller holds the lock of all who write (`lockWrites`), so numbers have no gaps.
 * @param mark at random
 */
export const addChange = (
  { all, forgotten }: PackedMoves,
  { mark, lastEvent }: { readonly mark: string; readonly lastEvent: number },
): RawBuilder<Pick<SetChange, 'seq' | 'after'>> => sql`
  insert into set_changes (seq, mark, after, moves, forgotten, last_event)
  select coalesce(last.seq, 0) + 1, ${mark}::uuid, last.mark, ${all}::bytea, ${forgotten}::bytea, ${lastEvent}::bigint
  from (select) once left join (select seq, mark from set_changes order by seq desc limit 1) last on true
  returning seq, after`;

/** The newest place. */
export async function readPlace(db: Kysely<Schema>): Promise<SetPlace> {
  const row = await db
    .selectFrom('set_changes')
    .select(['seq', 'mark', 'last_event as lastEvent'])
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? BEGINNING;
}

/** Rows that are read at once; one holds 2,000 messages at most. */
const READ_ROWS = 50;

/** What follows a place: rows, oldest first; or the place's own row was deleted, or the database has another history. */
export type Continuation =
  | { readonly state: 'here'; readonly rows: readonly (SetChange & { readonly moves: readonly Move[] })[] }
  | { readonly state: 'deleted' | 'other' };

/** What the database has after a place that a reader stands at. */
export async function readChanges(db: Kysely<Schema>, { seq, mark }: SetPlace): Promise<Continuation> {
  const rows = await db
    .selectFrom('set_changes')
    .select(({ eb, ref }) => [
      ...(['seq', 'mark', 'after', 'last_event as lastEvent'] as const),
      // Of the reader's own place only the mark is asked.
      eb.case().when('seq', '>', seq).then(ref('moves')).end().as('moves'),
      eb.case().when('seq', '>', seq).then(ref('forgotten')).end().as('forgotten'),
    ])
    .where('seq', '>=', seq)
    .orderBy('seq')
    .limit(READ_ROWS)
    .execute();
  const first = rows[0];
  const isEmpty = seq === 0 && !first;
  if (!isEmpty && (!first || (first.seq === seq && first.mark !== mark))) return { state: 'other' };
  if (first && first.seq > Math.max(seq, 1)) return { state: 'deleted' };
  return {
    state: 'here',
    rows: rows.flatMap(({ moves: all, forgotten, ...row }) =>
      all ? [{ ...row, moves: unpackMoves({ all, forgotten }) }] : [],
    ),
  };
}

/** How long a row is kept: a process that reads every second is never so far behind, and one that is reads the set anew. */
const KEPT_SECONDS = 120;

/** Deletes what every process has read long ago. The newest row stays: it says where the history stands. */
export async function trimChanges(db: Kysely<Schema>): Promise<void> {
  await sql`
    delete from set_changes
    where written_at < now() - make_interval(secs => ${KEPT_SECONDS})
      and seq < (select max(seq) from set_changes)`.execute(db);
}

/** No history of a database is called so: whoever writes next passes over numbers (`lockWrites`). */
const LOST = 'lost';

/**
 * Numbers of events that were given before are not given again: whoever reads by number would miss the new ones. Which was the last one
 * before the database went back nobody knows for certain, so the next ones are far above the last one that is known.
 */
export async function raiseEvents(db: Kysely<Schema>, lastEvent: number): Promise<void> {
  await sql`
    update event_counter set last_seq = greatest(last_seq, ${lastEvent}::bigint), timeline = ${LOST}`.execute(
    db,
  );
}
