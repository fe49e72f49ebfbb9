import { AppError, creditsToTokens, dollarsOf, type TokenPrice, tokensToCredits } from '@skerry/protocol';
import type {
  CreditEstimateView,
  PriceView,
  PurchaseView,
  TokenEstimateView,
} from '@skerry/protocol/api/credit';
import type { PurchaseRecord } from '../purchases.ts';
import type { Sale } from '../sales.ts';

/** Wire shapes of the deployed credit service. */

export function purchaseView({ purchase, status, itemHash, updatedAtMs }: PurchaseRecord): PurchaseView {
  return {
    id: purchase.id,
    chain: purchase.chain,
    status,
    created_at: purchase.timestamp * 1000,
    updated_at: updatedAtMs,
    address: purchase.address,
    in_amount: purchase.tokenAmount,
    in_currency: purchase.symbol,
    in_decimals: purchase.decimals,
    prices: {
      credit_amount: purchase.credits,
      credit_bonus_amount: purchase.bonus,
      credits_per_token: purchase.creditsPerToken,
    },
    provider_id: 'WALLET',
    payment_method: 'token_transfer',
    tx_hash: purchase.transactionHash,
    log_index: purchase.logIndex,
    block_number: purchase.blockNumber,
    item_hash: itemHash,
    reason: purchase.refusal,
  };
}

/** Dollars for one token. */
const unitPrice = (price: TokenPrice) => Number(dollarsOf(price.creditsPerToken));
const BASIS = 10_000;

/** An amount in JSON has to be a number that JSON can hold. Throws INVALID_PARAMETERS. */
function creditNumber(credits: bigint): number {
  if (credits > BigInt(Number.MAX_SAFE_INTEGER))
    throw new AppError('INVALID_PARAMETERS', 'body.amount buys more credits than one purchase can have');
  return Number(credits);
}

export function tokenEstimate(amount: bigint, price: TokenPrice, nowMs: number): TokenEstimateView {
  const { credits, bonus } = tokensToCredits(amount, price);
  return {
    tokenAmount: String(amount),
    tokenSymbol: price.symbol,
    creditAmount: creditNumber(credits),
    creditBonusAmount: creditNumber(bonus),
    totalPrice: Number(dollarsOf(credits - bonus)),
    price: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
    timestamp: nowMs,
  };
}

export function creditEstimate(credits: bigint, price: TokenPrice, nowMs: number): CreditEstimateView {
  return {
    creditAmount: creditNumber(credits),
    tokenAmount: String(creditsToTokens(credits, price)),
    tokenSymbol: price.symbol,
    priceRatio: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
    timestamp: nowMs,
  };
}

export function priceView({ network, chain, contract, receiver, price }: Sale): PriceView {
  const oneToken = 10n ** BigInt(price.decimals);
  const { credits, bonus } = tokensToCredits(oneToken, price);
  return {
    blockchain: network,
    chain,
    contract,
    receiver,
    tokenSymbol: price.symbol,
    tokenAmount: String(oneToken),
    decimals: price.decimals,
    creditAmount: Number(credits),
    creditBonusAmount: Number(bonus),
    price: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
  };
}
