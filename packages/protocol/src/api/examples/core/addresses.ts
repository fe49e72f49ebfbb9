import type { Examples } from '../../operation.ts';
import { DATE, DELEGATE, deployedPagination, FILE, OWNER } from '../values.ts';

const params = { address: OWNER };
const STATS = {
  [OWNER]: { messages: 5, aggregate: 1, forget: 0, instance: 1, post: 1, program: 1, store: 1 },
};
/** Of these messages. */
const CHANNELS = ['instances', 'notes', 'programs'];
const PERMITTED = [{ types: ['POST'], channels: ['notes'] }];

export const ADDRESS_EXAMPLES: Examples = {
  listAddressFiles: {
    params,
    answer: {
      address: OWNER,
      total_size: FILE.bytes,
      files: [{ file_hash: FILE.hash, size: FILE.bytes, type: 'file', created: DATE, item_hash: FILE.store }],
      ...deployedPagination(100),
    },
  },
  listAddressPostTypes: { params, answer: { address: OWNER, post_types: ['note'] } },
  listAddressChannels: { params, answer: { address: OWNER, channels: CHANNELS } },
  listChannels: { answer: { channels: CHANNELS } },
  getAddressStats: { query: { addresses: OWNER }, answer: { data: STATS } },
  listAddressStats: {
    query: { sortBy: 'POST' },
    answer: { data: STATS, ...deployedPagination(), pagination_item: 'addresses' },
  },
  listBalances: {
    answer: { balances: [], ...deployedPagination(100, 0), pagination_item: 'balances' },
  },
  listCreditBalances: {
    query: { min_balance: 1 },
    answer: {
      credit_balances: [{ address: OWNER, credits: 4_985_750 }],
      ...deployedPagination(100),
      pagination_item: 'credit_balances',
      next_cursor: null,
    },
  },
  getCreditSummary: {
    params,
    answer: {
      address: OWNER,
      entry_count: 2,
      total_amount: 4_985_750,
      total_incoming: 5_000_000,
      total_outgoing: -14_250,
    },
  },
  listGranted: {
    params,
    answer: {
      authorizations: { [DELEGATE]: PERMITTED },
      ...deployedPagination(),
      pagination_item: 'authorizations',
      address: OWNER,
    },
  },
  listReceived: {
    params: { address: DELEGATE },
    answer: {
      authorizations: { [OWNER]: PERMITTED },
      ...deployedPagination(),
      pagination_item: 'authorizations',
      address: DELEGATE,
    },
  },
};
