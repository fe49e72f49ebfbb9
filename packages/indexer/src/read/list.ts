import type { Page, Turns } from '@skerry/database';
import { Budget, inTransaction, NoTimeLeft, readInTurn, tookTooLong } from '@skerry/database';
import { AppError } from '@skerry/protocol';
import type pg from 'pg';
import { type BlockRange, type Bounds, findBlockRange } from './bounds.ts';
import { withinBudget } from './budget.ts';
import { type Cursor, checkCursor, writeCursor } from './cursor.ts';
import type { Hold } from './event-rows.ts';
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

/** The longest that all statements of a list together may keep the database busy: rows of a filter may be anywhere in a long chain. */
const LIST_MS = 5_000;

/** How a list is read. */
export interface Reading {
  /** Where an earlier page ended. */
  readonly cursor?: Cursor | undefined;
  readonly hold?: Hold | undefined;
  /** Where none is free, a list that is cheap needs none; without turns nobody waits. */
  readonly turns?: Turns | undefined;
  /** Milliseconds, in place of LIST_MS. */
  readonly budgetMs?: number | undefined;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: (() => number) | undefined;
}

export interface ListRequest extends Reading {
  readonly networkName: string;
  readonly bounds: Bounds;
  /** Whose coverage is told. Lower case. */
  readonly address: string | undefined;
  /** And of which events, by name or signature; of all where left out. */
  readonly eventName?: string | undefined;
  readonly page: Page;
}

/** What a list is read from. */
export interface Moment {
  readonly client: pg.PoolClient;
  readonly networkId: number;
  readonly coverage: readonly Coverage[];
  readonly range: BlockRange;
  readonly hold: Hold;
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

async function readPage<Row, View>(
  client: pg.PoolClient,
  { networkName, bounds, address, eventName, page, cursor }: ListRequest,
  { find, placeOf, describe }: ListSource<Row, View>,
  hold: Hold,
): Promise<List<View> | undefined> {
  const freshness = await findFreshness(client, networkName);
  if (!freshness) return undefined;
  const { networkId } = freshness;
  if (cursor) await checkCursor(client, networkId, cursor);
  const coverage =
    address === undefined ? [] : await listCoverageOf(client, networkId, { address, eventName, ...bounds });
  const range = await findBlockRange(client, networkId, bounds);
  const moment = range && { client, networkId, coverage, range, hold };
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
}

/** What waits for a turn holds nothing meanwhile, and a page that is heavy is not cheap. */
const holdNothing: Hold = () => {
  throw new NoTimeLeft();
};

/** Newest first. Undefined where the network is not known. Throws CURSOR_REORGED, LIST_TOO_COSTLY, and what `hold` and `turns` throw. */
export async function readList<Row, View>(
  pool: pg.Pool,
  request: ListRequest,
  source: ListSource<Row, View>,
): Promise<List<View> | undefined> {
  const { turns, hold = () => {}, budgetMs = LIST_MS, now } = request;
  try {
    return await readInTurn(turns, budgetMs, (allowed) =>
      inTransaction(
        pool,
        (client) => {
          const within = withinBudget(client, new Budget(allowed.budgetMs, now));
          return readPage(within, request, source, allowed.hasTurn ? hold : holdNothing);
        },
        `${SNAPSHOT}; set local statement_timeout = ${allowed.budgetMs}`,
      ),
    );
  } catch (error) {
    if (!tookTooLong(error)) throw error;
    throw new AppError(
      'LIST_TOO_COSTLY',
      'this list would have to read too many rows; ask for fewer blocks at a time',
      { cause: error },
    );
  }
}
