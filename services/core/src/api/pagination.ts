import type { Page, TimedPage } from '@skerry/database';
import { AppError, LIMITS, type PaginationView } from '@skerry/protocol';
import { NETWORK_PAGE_SIZE_MAX } from '@skerry/protocol/api/core/common/pagination';
import type { ConfirmedPage, ConfirmedPlace } from '../state/messages/first-confirmation.ts';
import { confirmedCursor, placeCursor } from './cursor.ts';

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

/** A message's place in order of time. */
export const placeOfMessage = (last: { readonly time: number; readonly item_hash: string }) => ({
  time: last.time,
  itemHash: last.item_hash,
});

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

export type NetworkPageQuery = Partial<Record<'pagination' | 'limit', number>> & {
  readonly page: number;
  readonly sortOrder: number;
  readonly cursor?: string | undefined;
};

function sizeOf(query: NetworkPageQuery): number {
  if (query.pagination === 0 && query.cursor !== undefined)
    throw new AppError('INVALID_PARAMETERS', 'query.cursor goes with a page size; query.pagination is 0');
  return eitherSizeOf(query);
}

/** The page size has a name in either form. */
export function eitherSizeOf({ limit, pagination }: Pick<NetworkPageQuery, 'limit' | 'pagination'>): number {
  if (limit !== undefined && pagination !== undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      'query.limit and query.pagination mean the same; send one of them',
    );
  return sizeOfPage(limit ?? pagination ?? LIMITS.pageSizeDefault);
}

/** Deployed nodes answer everything where no size is wanted; here as much as a page may have. */
export const sizeOfPage = (size: number) => (size === 0 ? NETWORK_PAGE_SIZE_MAX : size);

/** A page of a list of deployed nodes that has no cursors. */
export const deployedPageOf = ({ page, pagination }: { page: number; pagination: number }): Page => {
  const limit = sizeOfPage(pagination);
  return { limit, offset: (page - 1) * limit };
};

export const deployedPaginationOf = (query: { page: number; pagination: number }, total: number) => ({
  pagination_per_page: sizeOfPage(query.pagination),
  pagination_page: query.page,
  pagination_total: total,
});

const simplePageOf = (query: NetworkPageQuery) => ({
  page: query.page,
  limit: sizeOf(query),
  cursor: query.cursor,
});

export const networkPageOf = (query: NetworkPageQuery): TimedPage => ({
  ...timedPageOf(simplePageOf(query)),
  oldestFirst: query.sortOrder === 1,
});

/** The page of a list in order of first confirmations. */
export function confirmedPageOf(query: NetworkPageQuery): ConfirmedPage {
  const after = confirmedCursor.read(query.cursor);
  return {
    ...pageOf(simplePageOf(query)),
    oldestFirst: query.sortOrder === 1,
    after: after && { confirmed: after.c, time: after.t, itemHash: after.h },
  };
}

export const nextConfirmedCursorOf = <Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (last: Row) => ConfirmedPlace,
) =>
  nextCursorOf(rows, limit, (last) => {
    const { confirmed, time, itemHash } = placeOf(last);
    return confirmedCursor.write({ c: confirmed, t: time, h: itemHash });
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
