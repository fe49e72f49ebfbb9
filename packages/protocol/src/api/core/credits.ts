import { CREDIT_LINES_MAX, CREDIT_STATES } from '../../credit/content.ts';
import { RESOURCE_KINDS } from '../../credit/prices.ts';
import { LIMITS } from '../../limits.ts';
import { type Static, Type } from '../../type.ts';
import { PaginationView } from '../../views.ts';
import { type Api, defaulted, NO_PARAMETERS, orNull } from '../operation.ts';
import { asDeployed, reads } from './common/declare.ts';
import { flag } from './common/flag.ts';
import { deployedPaginationView, networkPageQuery, numberedPageQuery } from './common/pagination.ts';
import { creditFilters } from './deployed/addresses.ts';

/** Text that the database can hold. */
const NO_NUL = '^[^\\u0000]*$';
const SECONDS_MAX = 9_223_372_036;

export const digits = (description: string) => Type.String({ pattern: '^-?[0-9]+$', description });
const time = (description: string) => Type.Integer({ minimum: 0, maximum: SECONDS_MAX, description });
const strict = { additionalProperties: false } as const;
export const Address = Type.String({
  minLength: 1,
  maxLength: LIMITS.addressChars,
  pattern: NO_NUL,
  description: 'an address, in any spelling of its chain',
});
const AddressParams = Type.Object({ address: Address });

export const AccountView = Type.Object(
  {
    address: Type.String(),
    credit_balance: Type.Integer({ description: 'whole credits, rounded down' }),
    credit_balance_nano: digits('billionths of a credit'),
    credit_rate_nano: digits('what everything of the owner costs, billionths of a credit per second'),
    credit_hold: Type.Integer({ description: 'whole credits that one day costs; held back' }),
    credit_available: Type.Integer({ description: 'the balance minus the hold' }),
    credit_state: orNull(Type.Enum([...CREDIT_STATES])),
    credit_state_since: orNull(Type.Integer({ description: 'Unix seconds' })),
    runs_out_at: orNull(
      Type.Integer({
        description:
          'Unix seconds, at the present rate; `time` where nothing is left, null where nothing costs',
      }),
    ),
    time: Type.Integer({ description: 'the time to compute the balance for, Unix seconds' }),
  },
  { title: 'Account' },
);
export type AccountView = Static<typeof AccountView>;

/** Deployed clients ask for tokens that are held, too: here everything is paid by credit. */
const BalanceView = Type.Object(
  {
    ...AccountView.properties,
    balance: Type.Number({ description: 'token balance; always 0, since everything is paid with credits' }),
    details: Type.Object({}, { description: 'empty: token balances by chain, on deployed nodes' }),
    locked_amount: Type.Number({ description: '0: tokens that are held, on deployed nodes' }),
    credit_balance_details: orNull(
      Type.Array(Type.Object({ expiration_date: Type.Null(), amount: Type.Integer() })),
      { description: 'null where they are not asked for; no credit expires' },
    ),
  },
  { title: 'Balance' },
);

export const HistoryView = Type.Object(
  {
    amount: Type.Integer({ description: 'whole credits; negative for usage' }),
    amount_nano: digits('the same in billionths of a credit'),
    kind: Type.Enum(['purchase', 'expense']),
    bonus_amount: orNull(Type.Integer()),
    price: orNull(Type.String()),
    tx_hash: orNull(Type.String()),
    log_index: orNull(Type.Integer()),
    token: orNull(Type.String()),
    token_amount: orNull(Type.String()),
    chain: orNull(Type.String()),
    chain_id: orNull(Type.Integer()),
    provider: orNull(Type.String()),
    payment_method: orNull(Type.String()),
    origin: orNull(Type.String()),
    expiration_date: Type.Null({ description: 'credit does not expire' }),
    expense_count: orNull(Type.Number()),
    expense_size_mib: orNull(Type.Number()),
    origin_ref: Type.String({ description: 'the transaction, the note, or the resource' }),
    credit_ref: Type.String({ description: 'the message' }),
    credit_index: Type.Integer({ description: 'the place in it' }),
    start_date: orNull(Type.Integer(), { description: 'of what was used, Unix seconds, inclusive' }),
    end_date: orNull(Type.Integer(), { description: 'Unix seconds, exclusive' }),
    message_timestamp: Type.Integer({ description: 'Unix seconds' }),
  },
  { title: 'CreditHistory' },
);
export type HistoryView = Static<typeof HistoryView>;

const PricesView = Type.Object(
  {
    prices: Type.Record(
      Type.String(),
      Type.Object({
        compute_unit: digits('billionths of a credit per second'),
        storage_mib: digits('the same'),
        since: Type.Integer({ description: 'Unix seconds' }),
      }),
      { description: 'by kind: instance, program, storage' },
    ),
  },
  { title: 'Prices' },
);

const ChargesView = Type.Object(
  {
    start_date: Type.Integer({ description: 'Unix seconds' }),
    end_date: Type.Integer({ description: 'Unix seconds, exclusive' }),
    credits: Type.Array(
      Type.Object({
        address: Type.String(),
        ref: Type.String(),
        nanocredits: digits('billionths of a credit'),
      }),
    ),
  },
  { title: 'Charges' },
);
export type ChargesView = Static<typeof ChargesView>;

/** What is owned and owed: balances, history, prices, charges (docs/credit.md). Reading is for everyone. */
export const CREDITS_API = {
  getBalance: {
    method: 'GET',
    path: '/api/v0/addresses/:address/balance',
    summary: 'Get the credits of an address, now or at a given time',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    params: AddressParams,
    query: Type.Object(
      {
        time: Type.Optional(time('Unix seconds; now if left out')),
        chain: Type.Optional(
          Type.String({ maxLength: 16, pattern: NO_NUL, description: 'whose tokens are asked for' }),
        ),
        include_credit_details: flag('also what of the credit expires when'),
      },
      strict,
    ),
    answers: { 200: BalanceView },
    deployed: { differs: 'this network has no token balances, so `balance` and `locked_amount` are 0' },
  },
  listCreditHistory: {
    method: 'GET',
    path: '/api/v0/addresses/:address/credit_history',
    summary: 'List what an address bought and used, newest first',
    ...reads('INVALID_ADDRESS', 'LIST_TOO_COSTLY'),
    ...asDeployed,
    params: AddressParams,
    query: Type.Object(
      {
        page: numberedPageQuery.page,
        limit: networkPageQuery.limit,
        pagination: networkPageQuery.pagination,
        sort_by: defaulted(
          Type.Enum(['message_timestamp', 'amount'], { description: 'when it was, or how much' }),
          'message_timestamp',
        ),
        sort_order: defaulted(
          Type.Integer({ enum: [-1, 1], description: '-1: newest or largest first' }),
          -1,
        ),
        ...creditFilters,
        kind: Type.Optional(Type.Enum(['purchase', 'expense'], { description: 'what was bought, or used' })),
        ref: Type.Optional(
          Type.String({ maxLength: 256, pattern: NO_NUL, description: 'of one transaction or resource' }),
        ),
        transfer: Type.Optional(
          Type.String({
            pattern: '^[0-9]{1,16}/0x[0-9a-f]{64}/[0-9]{1,16}$',
            description: 'of one transfer: its chain id, transaction and log index, 1/0x…/7',
          }),
        ),
      },
      strict,
    ),
    answers: {
      200: Type.Object({
        address: Type.String(),
        credit_history: Type.Array(HistoryView),
        pagination: PaginationView,
        ...deployedPaginationView,
      }),
    },
    deployed: {
      differs:
        '200 with an empty list if the address has no history, not 404; pages are numbered, and `cursor` is refused',
    },
  },
  listPrices: {
    method: 'GET',
    path: '/api/v0/credits/prices',
    query: NO_PARAMETERS,
    summary: 'Get the prices of new instances, programs and files',
    ...reads(),
    answers: { 200: PricesView },
  },
  listCharges: {
    method: 'GET',
    path: '/api/v0/credits/charges',
    summary: 'Get what has not been charged yet for a period',
    ...reads('LIST_TOO_COSTLY'),
    rateClass: 'heavy',
    query: Type.Object(
      {
        kind: Type.Enum([...RESOURCE_KINDS], {
          description: 'instances are charged by the hour, files by the day',
        }),
        time: Type.Optional(time('Unix seconds, of the period; now if left out')),
        limit: defaulted(
          Type.Integer({ minimum: 1, maximum: CREDIT_LINES_MAX, description: 'how many lines' }),
          CREDIT_LINES_MAX,
        ),
      },
      strict,
    ),
    answers: { 200: ChargesView },
  },
  listAccounts: {
    method: 'GET',
    path: '/api/v0/credits/accounts',
    summary: 'List every account, ordered by address',
    ...reads('LIST_TOO_COSTLY'),
    rateClass: 'heavy',
    query: Type.Object(
      {
        after: defaulted(
          Type.String({
            maxLength: LIMITS.addressChars,
            pattern: NO_NUL,
            description: 'the last address of the page before',
          }),
          '',
        ),
        limit: numberedPageQuery.limit,
      },
      strict,
    ),
    answers: { 200: Type.Object({ accounts: Type.Array(AccountView) }) },
  },
} as const satisfies Api;
