import type { Examples } from '../operation.ts';
import {
  BLOCK,
  CREDIT_PUBLISHER,
  frontOf,
  OWNER,
  PAGINATION,
  TIME_MS,
  TOKEN,
  TRANSACTION,
} from './values.ts';

const SALE = { chain: 'ETH', contract: TOKEN, receiver: '0x2222222222222222222222222222222222222222' };

/** 9.58 USDC buy that many credits, asked either way. */
const CONVERSION = {
  tokenAmount: '9580000',
  tokenSymbol: 'USDC',
  creditAmount: 11_496_000,
  bonusRatio: 0.2,
  timestamp: TIME_MS,
};

const PURCHASES = {
  query: { address: OWNER, limit: 1 },
  answer: {
    data: [
      {
        id: `ethereum/${TRANSACTION}/7`,
        chain: 'ETH',
        status: 'PROCESSING',
        created_at: TIME_MS,
        updated_at: TIME_MS,
        address: OWNER,
        in_amount: '1000000',
        in_currency: 'USDC',
        in_decimals: 6,
        prices: { credit_amount: 1_000_000, credit_bonus_amount: 0, credits_per_token: 1_000_000 },
        provider_id: 'WALLET',
        payment_method: 'token_transfer',
        tx_hash: TRANSACTION,
        log_index: 7,
        block_number: BLOCK,
        item_hash: null,
        reason: null,
      },
    ],
    pagination: { ...PAGINATION, per_page: 1 },
  },
};

const CREDITS = {
  body: { blockchain: 'ethereum', token: 'USDC', amount: CONVERSION.tokenAmount },
  answer: { ...CONVERSION, creditBonusAmount: 1_916_000, totalPrice: 9.58, price: 1 },
};
const TOKENS = {
  body: { blockchain: 'ethereum', token: 'USDC', creditAmount: CONVERSION.creditAmount },
  answer: { ...CONVERSION, priceRatio: 1 },
};
const PRICES = {
  query: { blockchain: 'ethereum' },
  answer: {
    prices: [
      {
        blockchain: 'ethereum',
        ...SALE,
        tokenSymbol: 'USDC',
        tokenAmount: '1000000',
        decimals: 6,
        creditAmount: 1_200_000,
        creditBonusAmount: 200_000,
        price: 1,
        bonusRatio: 0.2,
      },
    ],
  },
};

/** Of what the credit service answers. */
export const CREDIT_SERVICE_EXAMPLES: Examples = {
  getFront: frontOf('Skerry credit service', 'What was bought, and what credits cost.', {
    status: '/status',
  }),
  listPurchases: PURCHASES,
  estimateCredits: CREDITS,
  estimateTokens: TOKENS,
  listSalePrices: PRICES,
  listPurchasesUnversioned: PURCHASES,
  estimateCreditsUnversioned: CREDITS,
  estimateTokensUnversioned: TOKENS,
  listSalePricesUnversioned: PRICES,
  getCreditStatus: {
    answer: {
      status: 'ok',
      reasons: [],
      address: CREDIT_PUBLISHER,
      enforcement: false,
      sales: [{ network: 'ethereum', token: 'USDC', ...SALE }],
      purchases: { total: 2, waiting: 1 },
    },
  },
};
