import { CREDITS_PER_DOLLAR, formatDecimal } from './amounts.ts';

/** A token that credits are sold for. */
export interface TokenPrice {
  readonly symbol: string;
  /** Its smallest unit is 10^-decimals of it. */
  readonly decimals: number;
  /** Whole credits for a whole token. */
  readonly creditsPerToken: bigint;
  /** What is given on top, in hundredths of a percent. */
  readonly bonusBasisPoints: number;
}

export interface CreditQuote {
  /** Bonus included. */
  readonly credits: bigint;
  readonly bonus: bigint;
}

const BASIS = 10_000n;

const ceilDivide = (value: bigint, by: bigint) => (value + by - 1n) / by;

/** What an amount of a token's smallest units buys: rounded down once, and the bonus once. */
export function tokensToCredits(amount: bigint, token: TokenPrice): CreditQuote {
  const base = (amount * token.creditsPerToken) / 10n ** BigInt(token.decimals);
  const bonus = (base * BigInt(token.bonusBasisPoints)) / BASIS;
  return { credits: base + bonus, bonus };
}

/** The least amount of smallest units that buys so many credits, bonus included. */
export function creditsToTokens(credits: bigint, token: TokenPrice): bigint {
  const base = ceilDivide(credits * BASIS, BASIS + BigInt(token.bonusBasisPoints));
  return ceilDivide(base * 10n ** BigInt(token.decimals), token.creditsPerToken);
}

const DOLLAR_PLACES = 6;

/** Dollars as decimal text: a credit is a millionth. */
export const dollarsOf = (credits: bigint): string =>
  formatDecimal((credits * 10n ** BigInt(DOLLAR_PLACES)) / CREDITS_PER_DOLLAR, DOLLAR_PLACES);
