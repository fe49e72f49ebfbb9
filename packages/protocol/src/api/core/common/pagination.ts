import { LIMITS } from '../../../limits.ts';
import { Type } from '../../../type.ts';
import { defaulted } from '../../operation.ts';

const cursor = Type.Optional(
  Type.String({
    maxLength: 1024,
    description: '`next_cursor` of the page before, for deep reads; not together with `page`',
  }),
);
const page = defaulted(
  Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, description: 'the page, from 1' }),
  1,
);
const limit = defaulted(
  Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, description: 'how many on a page' }),
  LIMITS.pageSizeDefault,
);

/** Where a list has no cursor. */
export const numberedPageQuery = { page, limit };

/** `page`, `limit` and `cursor` of every list (specification, "Limits"; docs/decisions.md 9). */
export const pageQuery = { page, limit, cursor };

export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: 'start of the next page; null after the last',
});

/** The largest page of a list of deployed nodes, which themselves have no limit. */
export const NETWORK_PAGE_SIZE_MAX = 10_000;
const networkSize = {
  minimum: 0,
  maximum: NETWORK_PAGE_SIZE_MAX,
} as const;
const LARGEST = `0 for the largest, ${NETWORK_PAGE_SIZE_MAX}`;

/** What pages the lists of deployed nodes (docs/decisions.md 12). */
export const networkPageQuery = {
  sortOrder: defaulted(Type.Integer({ enum: [-1, 1], description: '-1: newest first' }), -1),
  pagination: Type.Optional(
    Type.Integer({
      ...networkSize,
      description: `page size; ${LIMITS.pageSizeDefault} where it is left out, ${LARGEST}`,
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.pageSizeMax,
      description: 'page size, as in the other lists; not together with `pagination`',
    }),
  ),
  page,
  cursor,
};

/** The same where the address names the page. */
export const networkPathQuery = {
  sortOrder: networkPageQuery.sortOrder,
  pagination: networkPageQuery.pagination,
  limit: networkPageQuery.limit,
};

/** Numbered pages of deployed nodes. @param size of a page where none is asked for */
export const deployedPageQuery = (size: number) => ({
  pagination: defaulted(Type.Integer({ ...networkSize, description: `page size; ${LARGEST}` }), size),
  page,
});

export const deployedPaginationView = {
  pagination_per_page: Type.Integer(),
  pagination_page: Type.Integer(),
  pagination_total: Type.Integer(),
};

/** Not every deployed node says what the list is of, or has cursors. */
export const networkPaginationView = {
  pagination_per_page: Type.Integer(),
  pagination_item: Type.Optional(Type.String()),
  pagination_page: Type.Optional(Type.Integer()),
  pagination_total: Type.Optional(Type.Integer()),
  next_cursor: Type.Optional(NextCursor),
};
