import type { CostView } from '@skerry/protocol/api/core/costs';
import { AppError, costIn, formatDecimal, nanoOf, showCredits } from '@skerry/protocol/forms';

/** `9.58` with six decimals -> 9580000. Throws INVALID_PARAMETERS where there are more decimals than the token has. */
export function parseTokens(text: string, decimals: number): bigint {
  const [, whole, fraction = ''] = /^([0-9]{1,30})(?:\.([0-9]{1,36}))?$/.exec(text) ?? [];
  if (whole === undefined || fraction.length > decimals)
    throw new AppError(
      'INVALID_PARAMETERS',
      `an amount must be a number with up to ${decimals} decimals, not ${JSON.stringify(text)}`,
    );
  return BigInt(whole) * 10n ** BigInt(decimals) + BigInt(fraction.padEnd(decimals, '0') || '0');
}

export const renderTokens = (amount: string, decimals: number): string =>
  formatDecimal(BigInt(amount), decimals);

/** Whole credits, as a service tells them: `12,345,678`. */
export const renderCredits = (credits: number): string => showCredits(nanoOf(credits));

/** @param nano billionths of a credit: digits */
export const renderNano = (nano: string): string => showCredits(BigInt(nano));

/** What something has cost so far; of a node of an earlier release, in whole credits. */
export const renderUsed = (cost: Pick<CostView, 'consumed_credits' | 'consumed_credits_nano'>): string =>
  cost.consumed_credits_nano === undefined
    ? renderCredits(cost.consumed_credits)
    : renderNano(cost.consumed_credits_nano);

/** What a rate comes to in an hour. @param rate billionths of a credit per second: digits */
export const renderHourly = (rate: string): string => showCredits(costIn('hour', BigInt(rate)));
