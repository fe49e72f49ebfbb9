import { LIMITS } from '../limits.ts';
import { type Static, Type } from '../type.ts';
import { PaginationView } from '../views.ts';
import { type Api, defaulted, type Operation, orNull } from './operation.ts';
import { FRONT_API, REFERENCE_API } from './reference.ts';

/** Wire shapes of the deployed credit service. */

const Limit = Type.Integer({ minimum: 1, maximum: LIMITS.pageSizeMax, description: 'how many on a page' });

/** Two clients ask for the size of a page in two ways. */
const PurchasesQuery = Type.Object(
  {
    address: Type.Optional(Type.String({ maxLength: LIMITS.addressChars, description: 'who paid' })),
    page: defaulted(Type.Integer({ minimum: 1, maximum: LIMITS.pageMax }), 1),
    pagination: Type.Optional(Limit),
    limit: Type.Optional(Limit),
  },
  { additionalProperties: false },
);

const named = {
  blockchain: Type.String({ minLength: 1, maxLength: 64, description: 'ethereum, or ETH' }),
  token: Type.String({ minLength: 1, maxLength: 64, description: 'its symbol' }),
};
const AMOUNT = '^[0-9]{1,40}$';
const TokenBody = Type.Object({
  ...named,
  amount: Type.String({ pattern: AMOUNT, description: 'smallest units of the token' }),
});
const CreditBody = Type.Object({
  ...named,
  creditAmount: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
const PricesQuery = Type.Object(
  {
    blockchain: Type.Optional(Type.String({ maxLength: 64, description: 'on this chain only' })),
  },
  { additionalProperties: false },
);

export const PurchaseView = Type.Object(
  {
    id: Type.String({ description: 'names the transfer on its chain' }),
    chain: Type.String(),
    status: Type.String(),
    created_at: Type.Integer({ description: 'Unix milliseconds, of the block' }),
    updated_at: Type.Number({ description: 'Unix milliseconds' }),
    address: Type.String({ description: 'the payer, who receives the credits' }),
    in_amount: Type.String({ description: 'smallest units of the token' }),
    in_currency: Type.String(),
    in_decimals: Type.Integer(),
    prices: Type.Object({
      credit_amount: Type.Integer({ description: 'whole credits, bonus included' }),
      credit_bonus_amount: Type.Integer(),
      credits_per_token: Type.Number(),
    }),
    provider_id: Type.Literal('WALLET'),
    payment_method: Type.Literal('token_transfer'),
    tx_hash: Type.String(),
    log_index: Type.Integer(),
    block_number: Type.Integer(),
    item_hash: orNull(Type.String({ description: 'the message that credits it' })),
    reason: orNull(Type.String({ description: 'why nothing was credited; null otherwise' })),
  },
  { title: 'Purchase' },
);
export type PurchaseView = Static<typeof PurchaseView>;

const Timestamp = Type.Number({ description: 'Unix milliseconds' });
const TokenPrice = Type.Number({ description: 'dollars for one token' });
const Ratio = Type.Number({ description: 'of what was paid for' });

export const TokenEstimateView = Type.Object(
  {
    tokenAmount: Type.String(),
    tokenSymbol: Type.String(),
    creditAmount: Type.Integer({ description: 'whole credits, bonus included' }),
    creditBonusAmount: Type.Integer(),
    totalPrice: Type.Number({ description: 'dollars' }),
    price: TokenPrice,
    bonusRatio: Ratio,
    timestamp: Timestamp,
  },
  { title: 'TokenEstimate' },
);
export type TokenEstimateView = Static<typeof TokenEstimateView>;

export const CreditEstimateView = Type.Object(
  {
    creditAmount: Type.Integer(),
    tokenAmount: Type.String({ description: 'smallest units of the token' }),
    tokenSymbol: Type.String(),
    priceRatio: TokenPrice,
    bonusRatio: Ratio,
    timestamp: Timestamp,
  },
  { title: 'CreditEstimate' },
);
export type CreditEstimateView = Static<typeof CreditEstimateView>;

export const PriceView = Type.Object(
  {
    blockchain: Type.String(),
    chain: Type.String({ description: 'its code in messages' }),
    contract: Type.String(),
    receiver: Type.String({ description: 'the address to send tokens to' }),
    tokenSymbol: Type.String(),
    tokenAmount: Type.String({ description: 'one token, in its smallest units' }),
    decimals: Type.Integer(),
    creditAmount: Type.Integer({ description: 'credits for it, bonus included' }),
    creditBonusAmount: Type.Integer(),
    price: Type.Number({ description: 'dollars' }),
    bonusRatio: Ratio,
  },
  { title: 'Price' },
);
export type PriceView = Static<typeof PriceView>;

export const CreditStatusView = Type.Object(
  {
    status: Type.Enum(['ok', 'degraded']),
    reasons: Type.Array(Type.String()),
    address: Type.String({ description: 'the address the core node must trust' }),
    enforcement: Type.Boolean({ description: 'whether unpaid resources are stopped' }),
    sales: Type.Array(
      Type.Object({
        network: Type.String(),
        chain: Type.String(),
        token: Type.String(),
        contract: Type.String(),
        receiver: Type.String(),
      }),
    ),
    purchases: Type.Object({
      total: Type.Integer(),
      waiting: Type.Integer({ description: 'not credited yet' }),
    }),
  },
  { title: 'Status' },
);
export type CreditStatusView = Static<typeof CreditStatusView>;

const listPurchases = {
  method: 'GET',
  path: '/api/v0/payment',
  rateClass: 'general',
  summary: 'List purchases, newest first',
  query: PurchasesQuery,
  answers: { 200: Type.Object({ data: Type.Array(PurchaseView), pagination: PaginationView }) },
  errors: ['INVALID_ADDRESS'],
} as const satisfies Operation;

const estimateCredits = {
  method: 'POST',
  path: '/api/v0/estimation/token-to-credit',
  rateClass: 'general',
  summary: 'Convert an amount of tokens to credits at the current price',
  body: { kind: 'json', schema: TokenBody },
  answers: { 200: TokenEstimateView },
  errors: ['TOKEN_NOT_SOLD'],
} as const satisfies Operation;

const estimateTokens = {
  method: 'POST',
  path: '/api/v0/estimation/credit-to-token',
  rateClass: 'general',
  summary: 'Convert a number of credits to tokens at the current price',
  body: { kind: 'json', schema: CreditBody },
  answers: { 200: CreditEstimateView },
  errors: ['TOKEN_NOT_SOLD'],
} as const satisfies Operation;

const listSalePrices = {
  method: 'GET',
  path: '/api/v0/estimation/prices',
  rateClass: 'general',
  summary: 'List the tokens accepted for credits and where to send them',
  query: PricesQuery,
  answers: { 200: Type.Object({ prices: Type.Array(PriceView) }) },
  errors: [],
} as const satisfies Operation;

/** What the credit service answers. Deployed clients write the version in paths, the specification's table does not. */
export const CREDIT_API = {
  listPurchases,
  estimateCredits,
  estimateTokens,
  listSalePrices,
  listPurchasesUnversioned: { ...listPurchases, path: '/payment' },
  estimateCreditsUnversioned: { ...estimateCredits, path: '/estimation/token-to-credit' },
  estimateTokensUnversioned: { ...estimateTokens, path: '/estimation/credit-to-token' },
  listSalePricesUnversioned: { ...listSalePrices, path: '/estimation/prices' },
  getCreditStatus: {
    method: 'GET',
    path: '/status',
    rateClass: 'general',
    summary: 'Get the problems of the service and what it sells',
    tag: 'node',
    answers: { 200: CreditStatusView },
    errors: [],
  },
  ...FRONT_API,
  ...REFERENCE_API,
} as const satisfies Api;
