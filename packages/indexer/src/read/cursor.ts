import { AppError } from '@skerry/protocol';
import type pg from 'pg';

/** Where a list goes on: after which row, and since when what the caller has seen could have been undone. */
export interface Cursor {
  readonly block: number;
  /** Place in the block: of a log, or of a transaction. */
  readonly index: number;
  /** The highest block of the first page. */
  readonly top: number;
  /** Reorganisations that were undone before the first page. */
  readonly undoSeq: number;
}

/** The largest place that its columns hold. */
const INDEX_MAX = 2 ** 31 - 1;
const FORM = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/;

export function writeCursor({ block, index, top, undoSeq }: Cursor): string {
  return Buffer.from(`${block}.${index}.${top}.${undoSeq}`).toString('base64url');
}

const refusal = () => new AppError('INVALID_CURSOR', 'a cursor is what an earlier page said it is');

/** Throws INVALID_CURSOR. */
export function parseCursor(text: string): Cursor {
  const parts = FORM.exec(Buffer.from(text, 'base64url').toString('latin1'))?.slice(1).map(Number);
  if (!parts || parts.some((part) => !Number.isSafeInteger(part))) throw refusal();
  const [block, index, top, undoSeq] = parts as [number, number, number, number];
  if (index > INDEX_MAX) throw refusal();
  return { block, index, top, undoSeq };
}

/** Throws CURSOR_REORGED where rows of earlier pages were taken back: those above the ancestor are not true any more. */
export async function checkCursor(client: pg.PoolClient, networkId: number, cursor: Cursor): Promise<void> {
  const { rows } = await client.query<{ ancestor: number | null }>(
    'select min(ancestor) as ancestor from indexer_undos where network_id = $1 and seq > $2',
    [networkId, cursor.undoSeq],
  );
  const ancestor = rows[0]!.ancestor;
  if (ancestor === null || ancestor >= cursor.top) return;
  throw new AppError(
    'CURSOR_REORGED',
    `the chain was reorganised after block ${ancestor}: drop later rows and begin again`,
    { details: { ancestor } },
  );
}
