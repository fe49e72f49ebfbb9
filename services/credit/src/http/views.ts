import { creditsToTokens, dollarsOf, type TokenPrice, tokensToCredits } from '@skerry/protocol';
import type { PurchaseRecord } from '../purchases.ts';

/** Wire shapes of the deployed credit service. */

export function purchaseView({ purchase, status, itemHash, updatedAtMs }: PurchaseRecord) {
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

export function tokenEstimate(amount: bigint, price: TokenPrice, nowMs: number) {
  const { credits, bonus } = tokensToCredits(amount, price);
  return {
    tokenAmount: String(amount),
    tokenSymbol: price.symbol,
    creditAmount: credits,
    creditBonusAmount: bonus,
    totalPrice: Number(dollarsOf(credits - bonus)),
    price: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
    timestamp: nowMs,
  };
}

export function creditEstimate(credits: bigint, price: TokenPrice, nowMs: number) {
  return {
    creditAmount: credits,
    tokenAmount: String(creditsToTokens(credits, price)),
    tokenSymbol: price.symbol,
    priceRatio: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
    timestamp: nowMs,
  };
}

export function priceView(price: TokenPrice) {
  const oneToken = 10n ** BigInt(price.decimals);
  const { credits, bonus } = tokensToCredits(oneToken, price);
  return {
    tokenSymbol: price.symbol,
    tokenAmount: String(oneToken),
    decimals: price.decimals,
    creditAmount: Number(credits),
    creditBonusAmount: Number(bonus),
    price: unitPrice(price),
    bonusRatio: price.bonusBasisPoints / BASIS,
  };
}
