import { NoTimeLeft } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { isWithoutTurn } from './time-limit.ts';

/** Text of one answer: what is made of it takes some five times as much, and a node has a heap of 512 MiB. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** An answer with so much text is read at once. What a heavier one holds is found out first, and taken from its client's share. */
export const LIGHT_BYTES = 1024 * 1024;

/** Told how much text an answer will have, before it is read. Throws RATE_LIMITED, OVERLOADED. */
export type Hold = (bytes: number) => void;

/** For who has bounds of its own. */
export const HOLDS_NOTHING: Hold = () => {};

/** Refuses an answer that would be too much to hold at once. Throws LIST_TOO_COSTLY. @param of what it would be */
export function checkWeight(bytes: number, of: string): void {
  if (bytes <= ANSWER_BYTES_MAX) return;
  throw new AppError(
    'LIST_TOO_COSTLY',
    `this answer has more than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB of ${of}; ask for less at a time`,
  );
}

/**
 * Holds what was found to weigh so much, before it is read. A heavy answer has its turn first: what it holds is hardly enough for two.
 * Throws LIST_TOO_COSTLY, NoTimeLeft, and what `hold` throws. @param of what it would be
 */
export function holdFound(on: Kysely<Schema>, bytes: number, hold: Hold, of: string): void {
  checkWeight(bytes, of);
  if (bytes > LIGHT_BYTES && isWithoutTurn(on)) throw new NoTimeLeft();
  hold(bytes);
}

/** Of a message `m`. Of a content that came as a file there is no text. */
const BYTES = sql`coalesce(octet_length(m.source_text), octet_length(m.content::text), 0)`;

/** What is picked of messages `m`, or of what weighs `bytes`. */
export interface Picked {
  readonly columns: RawBuilder<unknown>;
  readonly from: RawBuilder<unknown>;
  readonly order?: RawBuilder<unknown>;
  readonly hold: Hold;
  /** What the statement begins with. */
  readonly begin?: RawBuilder<unknown>;
  readonly bytes?: RawBuilder<unknown>;
  /** What they are, for who is refused. */
  readonly of?: string;
}

/**
 * Reads messages, of which there may be any amount. The weight comes with the rows; of what is no light answer it comes with one row
 * alone. Throws LIST_TOO_COSTLY, and what `hold` throws.
 */
export async function readWeighed<Row>(
  on: Kysely<Schema>,
  { columns, from, order = sql``, hold, begin = sql``, bytes: weight = BYTES, of = 'messages' }: Picked,
): Promise<Row[]> {
  const { rows } = await sql<Row & { answer_bytes: number }>`${begin}
    select * from (
      select ${columns}, sum(${weight}) over () as answer_bytes, row_number() over () as answer_row from ${from} ${order}) w
    where answer_bytes <= ${sql.lit(LIGHT_BYTES)} or answer_row = 1`.execute(on);
  const bytes = rows[0]?.answer_bytes ?? 0;
  holdFound(on, bytes, hold, of);
  if (bytes <= LIGHT_BYTES) return rows;
  return (
    await sql<Row>`${begin}
    select ${columns} from ${from} ${order}`.execute(on)
  ).rows;
}
