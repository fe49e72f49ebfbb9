import type { Examples } from '../../operation.ts';
import { PROFILE } from '../signed.ts';
import { DATE, deployedPagination, OWNER, PAGINATION, TIME } from '../values.ts';

const { key, content } = PROFILE.body.message.content;
const made = { created: DATE, last_updated: DATE };

const AS_DEPLOYED = { key, address: OWNER, content, ...made };
const AGGREGATE = {
  ...{ key, address: OWNER, content, time: TIME, item_hash: PROFILE.itemHash },
  ...made,
};

export const AGGREGATE_EXAMPLES: Examples = {
  writeAggregate: { body: PROFILE.body, answer: { item_hash: PROFILE.itemHash, status: 'success' } },
  getAggregate: { params: { address: OWNER, key }, answer: AGGREGATE },
  listAggregates: {
    query: { keys: key },
    answer: {
      aggregates: [AGGREGATE],
      pagination: PAGINATION,
      ...deployedPagination(),
      pagination_item: 'aggregates',
      next_cursor: null,
    },
  },
  listNetworkAggregates: {
    query: { keys: key },
    answer: {
      aggregates: [AS_DEPLOYED],
      ...deployedPagination(),
      pagination_item: 'aggregates',
      next_cursor: null,
    },
  },
  listOwnedAggregates: {
    params: { address: OWNER },
    query: { keys: key, with_info: true },
    answer: {
      address: OWNER,
      data: { [key]: content },
      info: { [key]: { ...made, last_update_item_hash: PROFILE.itemHash } },
    },
  },
};
