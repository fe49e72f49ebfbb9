import type { Examples } from '../../operation.ts';
import { INSTANCE } from '../signed.ts';
import {
  deployedPagination,
  FILE,
  OWNER,
  PAGINATION,
  PLANNED_INSTANCE,
  TIME,
  TRANSACTION,
} from '../values.ts';

/** One compute unit at the default price: what a second costs, and an hour, which is 14,249.9999988 (docs/credit.md). */
const NANO_PER_SECOND = '3958333333';
const PER_SECOND = '3.958333333000000000';
const PER_HOUR = 14_250;
const HOUR = { consumed_credits: PER_HOUR, consumed_credits_nano: '14249999998800' };
/** An hour after the owner bought credits and began to use them. */
const LATER = TIME + 3_600;
const NONE = '0.000000000000000000';

const ACCOUNT = {
  address: OWNER,
  credit_balance: 4_985_750,
  credit_balance_nano: '4985750000001200',
  credit_rate_nano: NANO_PER_SECOND,
  credit_hold: 342_000,
  credit_available: 4_643_750,
  credit_state: null,
  credit_state_since: null,
  runs_out_at: LATER + 1_259_557,
  time: LATER,
};

const PURCHASE = {
  amount: 5_000_000,
  amount_nano: '5000000000000000',
  kind: 'purchase',
  bonus_amount: null,
  price: '1000000',
  tx_hash: TRANSACTION,
  log_index: 7,
  token: 'USDC',
  token_amount: '5000000',
  chain: 'ETH',
  chain_id: 1,
  provider: null,
  payment_method: null,
  origin: null,
  expiration_date: null,
  expense_count: null,
  expense_size_mib: null,
  origin_ref: `1/${TRANSACTION}/7`,
  credit_ref: '93354845030274cd4bf1686abd60ab28ec52e1a792fa6f7ccb9cbd0ddff53d12',
  credit_index: 0,
  start_date: null,
  end_date: null,
  message_timestamp: TIME,
};

const rates = (credits: string) => ({ cost_hold: NONE, cost_stream: NONE, cost_credit: credits });
const partOf = (type: string, credits: string, mib: number | null) => ({
  type,
  name: type,
  ...rates(credits),
  size_mib: mib,
});
const priceOf = (part: ReturnType<typeof partOf>) => ({
  required_tokens: 0,
  payment_type: 'credit',
  cost: part.cost_credit,
  detail: [part],
  charged_address: OWNER,
});
const COMPUTE = partOf('EXECUTION', PER_SECOND, null);

/** A file that is not sent yet. */
const PLANNED_FILE = {
  address: OWNER,
  time: TIME,
  item_type: 'storage',
  item_hash: FILE.hash,
  estimated_size_mib: 30,
};

const recalculated = (messages: number) => ({
  message: 'the prices were read again; costs follow from them and are not stored',
  recalculated_count: 0,
  total_messages: messages,
  pricing_changes_found: 1,
});

const item = { item_hash: INSTANCE.itemHash };

/** What is owned and owed, and what things cost. */
export const CREDIT_EXAMPLES: Examples = {
  getBalance: {
    params: { address: OWNER },
    answer: { ...ACCOUNT, balance: 0, details: {}, locked_amount: 0, credit_balance_details: null },
  },
  listCreditHistory: {
    params: { address: OWNER },
    query: { kind: 'purchase' },
    answer: {
      address: OWNER,
      credit_history: [PURCHASE],
      pagination: PAGINATION,
      ...deployedPagination(),
    },
  },
  listPrices: {
    answer: {
      prices: {
        instance: { compute_unit: NANO_PER_SECOND, storage_mib: '7535', since: 0 },
        program: { compute_unit: '791666667', storage_mib: '7535', since: 0 },
        storage: { compute_unit: '0', storage_mib: '7535', since: 0 },
      },
    },
  },
  listCharges: {
    query: { kind: 'instance', time: TIME },
    answer: {
      start_date: 1_767_322_800,
      end_date: 1_767_326_400,
      credits: [{ address: OWNER, ref: INSTANCE.itemHash, nanocredits: '13280208332215' }],
    },
  },
  listAccounts: { answer: { accounts: [ACCOUNT] } },
  listCosts: {
    query: { address: OWNER, include_details: 1 },
    answer: {
      summary: {
        total_consumed_credits: PER_HOUR,
        total_cost_hold: NONE,
        total_cost_stream: NONE,
        total_cost_credit: PER_SECOND,
        resource_count: 1,
      },
      filters: { address: OWNER, item_hash: null, payment_type: 'credit' },
      resources: [
        {
          ...item,
          owner: OWNER,
          type: 'instance',
          payment_type: 'credit',
          compute_units: 1,
          size_mib: 0,
          ...rates(PER_SECOND),
          cost_credit_nano: NANO_PER_SECOND,
          ...HOUR,
          created: TIME,
        },
      ],
      ...deployedPagination(100),
      pagination_item: 'resources',
    },
  },
  getCost: { params: item, answer: priceOf(COMPUTE) },
  estimateCost: {
    body: {
      message: { type: 'STORE', item_type: 'inline', item_content: JSON.stringify(PLANNED_FILE) },
    },
    answer: priceOf(partOf('STORAGE', '0.000226050000000000', 30)),
  },
  estimateInstanceCost: { body: PLANNED_INSTANCE, answer: priceOf(COMPUTE) },
  recalculateCosts: { answer: recalculated(3) },
  recalculateCost: { params: item, answer: recalculated(1) },
  getConsumedCredits: {
    params: { hash: INSTANCE.itemHash },
    answer: { ...item, ...HOUR },
  },
};
