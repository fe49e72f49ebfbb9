import type { Page } from '@skerry/database';
import { inTransaction, isTooLong } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { type BlockRange, type Bounds, findBlockRange } from './bounds.ts';
import { type Cursor, checkCursor, writeCursor } from './cursor.ts';
import { type Coverage, type Freshness, findFreshness, listCoverageOf } from './status.ts';

export interface List<T> {
  readonly items: T[];
  readonly total: number;
  /** false: there are at least `total`. */
  readonly totalIsExact: boolean;
  /** Where the next page begins; null after the last one. */
  readonly cursor: string | null;
  readonly freshness: Freshness;
  readonly coverage: Coverage[];
}

/**
 * One page is one moment of the chain: rows, total and head are of the same snapshot. A server that compiles what looks costly, or
 * starts processes for it, takes longer for that than most lists do.
 */
export const SNAPSHOT = `begin isolation level repeatable read read only;
  set local jit = off; set local max_parallel_workers_per_gather = 0`;

/** The longest that one statement of a list may keep the database busy: rows of a filter may be anywhere in a long chain. */
const STATEMENT_MS = 5_000;

export interface ListRequest {
  readonly networkName: string;
  readonly bounds: Bounds;
  /** Whose coverage is told. Lower case. */
  readonly address: string | undefined;
  /** And of which events, by name or signature; of all where left out. */
  readonly eventName?: string | undefined;
  readonly page: Page;
  readonly cursor: Cursor | undefined;
  readonly statementMs?: number | undefined;
}

/** What a list is read from. */
export interface Moment {
  readonly client: pg.PoolClient;
  readonly networkId: number;
  readonly coverage: readonly Coverage[];
  readonly range: BlockRange;
}

/** The rows of a page, newest first, and how many there are in all. */
export interface Found<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly totalIsExact: boolean;
}

/** How one sort of rows is found and shown. */
export interface ListSource<Row, View> {
  /** Undefined where nothing can be there. */
  find(moment: Moment): Promise<Found<Row> | undefined>;
  placeOf(row: Row): Pick<Cursor, 'block' | 'index'>;
  describe(moment: Moment, rows: readonly Row[]): Promise<View[]> | View[];
}

/** Newest first. Undefined where the network is not known. Throws CURSOR_REORGED, LIST_TOO_COSTLY. */
export async function readList<Row, View>(
  pool: pg.Pool,
  { networkName, bounds, address, eventName, page, cursor, statementMs = STATEMENT_MS }: ListRequest,
  { find, placeOf, describe }: ListSource<Row, View>,
): Promise<List<View> | undefined> {
  const read = async (client: pg.PoolClient): Promise<List<View> | undefined> => {
    const freshness = await findFreshness(client, networkName);
    if (!freshness) return undefined;
    const { networkId } = freshness;
    if (cursor) await checkCursor(client, networkId, cursor);
    const coverage =
      address === undefined ? [] : await listCoverageOf(client, networkId, { address, eventName, ...bounds });
    const range = await findBlockRange(client, networkId, bounds);
    const moment = range && { client, networkId, coverage, range };
    const found = moment && (await find(moment));
    if (!found) return { items: [], total: 0, totalIsExact: true, cursor: null, freshness, coverage };
    const { rows, total, totalIsExact } = found;
    const last = rows.length === page.limit ? rows.at(-1) : undefined;
    const next = last && {
      ...placeOf(last),
      top: cursor?.top ?? placeOf(rows[0]!).block,
      undoSeq: cursor?.undoSeq ?? freshness.undoSeq,
    };
    const items = await describe(moment, rows);
    return { items, total, totalIsExact, cursor: next ? writeCursor(next) : null, freshness, coverage };
  };
  try {
    return await inTransaction(pool, read, `${SNAPSHOT}; set local statement_timeout = ${statementMs}`);
  } catch (error) {
    if (!isTooLong(error)) throw error;
    throw new AppError(
      'LIST_TOO_COSTLY',
      'this list would have to read too many rows; ask for fewer blocks at a time',
      { cause: error },
    );
  }
}
