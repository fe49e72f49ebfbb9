import type { Examples } from '../../operation.ts';
import { NOTE } from '../signed.ts';
import { BLOCK, DELEGATE, OWNER, PAGINATION, TIME, TOKEN, TRANSACTION } from '../values.ts';

const params = { network: 'ethereum' };

const FRESHNESS = { head: BLOCK + 2, finalized: BLOCK - 60, indexed: BLOCK + 2, lag: 0, state: 'live' };
const NETWORK = {
  network: 'ethereum',
  chain_id: 1,
  ...FRESHNESS,
  halt: null,
  progress_at: TIME,
  calls: 5_210,
};
const coverageOf = (contract: string, kind: 'events' | 'transactions') => ({
  contract,
  kind,
  from_block: BLOCK - 100_000,
  to_block: BLOCK + 2,
  live: true,
});
const listOf = (coverage: ReturnType<typeof coverageOf>) => ({
  pagination: { ...PAGINATION, total_is_exact: true },
  cursor: null,
  coverage: [coverage],
  ...FRESHNESS,
});

/** What indexers of chains read. */
export const CHAIN_EXAMPLES: Examples = {
  listNetworks: { answer: { networks: [NETWORK] } },
  getNetwork: {
    params,
    answer: {
      ...NETWORK,
      contracts: [coverageOf(TOKEN, 'events')],
      endpoints: [
        {
          name: 'rpc.example.org',
          requests: 1_870,
          calls: 5_210,
          failures: {},
          head: BLOCK + 2,
          range_blocks: 2_000,
          concurrency: 4,
          resting: false,
        },
      ],
    },
  },
  listIndexRequests: {
    params: { address: OWNER },
    answer: { requests: [{ item_hash: NOTE.itemHash, reason: null, settled_at: TIME }] },
  },
  listChainEvents: {
    params,
    query: { contract: TOKEN, event_name: 'Transfer' },
    answer: {
      events: [
        {
          transaction_hash: TRANSACTION,
          block_number: BLOCK,
          log_index: 7,
          contract: TOKEN,
          event_name: 'Transfer',
          event_signature: 'Transfer(address,address,uint256)',
          event_parameters: ['from', 'to', 'value'],
          args: { from: OWNER, to: DELEGATE, value: '5000000' },
          timestamp: TIME,
        },
      ],
      ...listOf(coverageOf(TOKEN, 'events')),
    },
  },
  listChainTransactions: {
    params,
    query: { from: OWNER },
    answer: {
      transactions: [
        {
          hash: TRANSACTION,
          block_number: BLOCK,
          from: OWNER,
          to: TOKEN,
          value: '0',
          gas: 46_109,
          gas_price: '1500000000',
          timestamp: TIME,
        },
      ],
      ...listOf(coverageOf(OWNER, 'transactions')),
    },
  },
};
