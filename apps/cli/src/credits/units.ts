import { AppError, formatDecimal } from '@skerry/protocol/forms';

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

/** Credits with thousands apart: `12,345,678`. */
export const renderCredits = (credits: number): string => credits.toLocaleString('en');

const SECONDS_PER_HOUR = 3_600n;
const NANO_PLACES = 9;

/** Billionths per second -> credits per hour, two decimals. */
export function renderHourly(nanoPerSecond: string): string {
  const nano = BigInt(nanoPerSecond) * SECONDS_PER_HOUR;
  const rounding = 10n ** 7n;
  const [whole = '', ...decimals] = formatDecimal(
    ((nano + rounding / 2n) / rounding) * rounding,
    NANO_PLACES,
  ).split('.');
  return [BigInt(whole).toLocaleString('en'), ...decimals].join('.');
}
