import { AppError, LIMITS, type PaginationView } from '@skerry/protocol';
import Type from 'typebox';
import type { Page } from '../db/page.ts';

/** `page`, `limit` and `cursor` of every list (specification, "Limits"; docs/decisions.md 9). */
export const pageQuery = {
  page: Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: 1 }),
  limit: Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, default: LIMITS.pageSizeDefault }),
  cursor: Type.Optional(
    Type.String({
      maxLength: 1024,
      description: '`next_cursor` of the page before, for deep reads; not together with `page`',
    }),
  ),
};

export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: 'where the next page begins; null after the last',
});

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

export function paginationOf(query: { page: number; limit: number }, total: number): PaginationView {
  return { total, page: query.page, per_page: query.limit, total_pages: Math.ceil(total / query.limit) };
}

/** A page that is full may have another after it. */
export const nextCursorOf = <Row>(rows: readonly Row[], limit: number, write: (last: Row) => string) =>
  rows.length < limit || rows.length === 0 ? null : write(rows.at(-1)!);
