import { LIMITS, type PaginationView } from '@skerry/protocol';
import Type from 'typebox';
import type { Page } from '../db/page.ts';

/** `page` and `limit` of every list (specification, "Limits"; design decision 12). */
export const pageQuery = {
  page: Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: 1 }),
  limit: Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, default: LIMITS.pageSizeDefault }),
};

export function pageOf(query: { page: number; limit: number }): Page {
  return { limit: query.limit, offset: (query.page - 1) * query.limit };
}

export function paginationOf(query: { page: number; limit: number }, total: number): PaginationView {
  return { total, page: query.page, per_page: query.limit, total_pages: Math.ceil(total / query.limit) };
}
