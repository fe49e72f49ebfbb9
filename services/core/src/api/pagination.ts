import type { Page, TimedPage } from '@skerry/database';
import { AppError, LIMITS, type PaginationView } from '@skerry/protocol';
import { placeCursor } from './cursor.ts';

interface PageQuery {
  readonly page: number;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export function pageOf(query: PageQuery): Page {
  if (query.cursor !== undefined && query.page !== 1)
    throw new AppError('INVALID_PARAMETERS', 'query.page and query.cursor exclude each other');
  return { limit: query.limit, offset: (query.page - 1) * query.limit };
}

/** The page of a list that is in order of time. */
export function timedPageOf(query: PageQuery): TimedPage {
  const after = placeCursor.read(query.cursor);
  return { ...pageOf(query), after: after && { time: after.t, itemHash: after.h } };
}

export function paginationOf(query: { page: number; limit: number }, total: number): PaginationView {
  return { total, page: query.page, per_page: query.limit, total_pages: Math.ceil(total / query.limit) };
}

/** A page that is full may have another after it. */
export const nextCursorOf = <Row>(rows: readonly Row[], limit: number, write: (last: Row) => string) =>
  rows.length < limit || rows.length === 0 ? null : write(rows.at(-1)!);

/** The same where the list is in order of time. */
export const nextTimedCursorOf = <Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (last: Row) => { readonly time: number; readonly itemHash: string },
) =>
  nextCursorOf(rows, limit, (last) => {
    const { time, itemHash } = placeOf(last);
    return placeCursor.write({ t: time, h: itemHash });
  });

type NetworkPageQuery = Partial<Record<'pagination' | 'limit', number>> & {
  readonly page: number;
  readonly sortOrder: number;
  readonly cursor?: string | undefined;
};

/** The page size has a name in either form. */
function sizeOf({ limit, pagination }: NetworkPageQuery): number {
  if (limit !== undefined && pagination !== undefined)
    throw new AppError('INVALID_PARAMETERS', 'query.limit and query.pagination are one parameter');
  return limit ?? pagination ?? LIMITS.pageSizeDefault;
}

export const networkPageOf = (query: NetworkPageQuery): TimedPage => ({
  ...timedPageOf({ page: query.page, limit: sizeOf(query), cursor: query.cursor }),
  oldestFirst: query.sortOrder === 1,
});

/** Totals by page, or a cursor alone: as deployed nodes answer. */
export const networkPaginationOf = async (
  query: NetworkPageQuery,
  item: string,
  total: () => Promise<number>,
) => ({
  pagination_per_page: sizeOf(query),
  pagination_item: item,
  ...(query.cursor === undefined ? { pagination_page: query.page, pagination_total: await total() } : {}),
});
