/**
 * Credits: a million of them are one US dollar. What is bought are whole credits; what is used is counted in billionths,
 * so that a cost per second is a whole number and nothing is ever rounded but for display (shown.ts).
 */
export const NANO_PER_CREDIT = 1_000_000_000n;
export const CREDITS_PER_DOLLAR = 1_000_000n;

/** @param credits whole */
export const nanoOf = (credits: number | bigint): bigint => BigInt(credits) * NANO_PER_CREDIT;

const sizeOf = (value: bigint) => (value < 0n ? -value : value);

/** A quotient, rounded towards less. @param by above zero */
export const floorDivide = (value: bigint, by: bigint): bigint =>
  value / by - (value < 0n && value % by !== 0n ? 1n : 0n);

/** A price per second is rounded to a billionth of a credit: what it comes to is off by less than this part of itself. */
const ROUNDING_PART = 1_000_000_000n;

/**
 * The whole credits that an amount is, but for what the rounding of prices makes of it; undefined where it has a fraction. An
 * hour at 14,250 an hour is 14,249.9999988.
 */
export function wholeCreditsOf(nano: bigint): bigint | undefined {
  const half = NANO_PER_CREDIT / 2n;
  const nearest = floorDivide(nano + half, NANO_PER_CREDIT);
  const off = sizeOf(nano - nearest * NANO_PER_CREDIT);
  return off === 0n || (off < half && off < sizeOf(nano) / ROUNDING_PART) ? nearest : undefined;
}

/** Whole credits as people are shown them: with a fraction, rounded towards less, so that nobody is shown what they do not have. */
export const creditsOf = (nano: bigint): bigint => wholeCreditsOf(nano) ?? floorDivide(nano, NANO_PER_CREDIT);

/** A whole number of `10^-places` as decimal text without trailing zeros: `formatDecimal(1500n, 3)` is `1.5`. */
export function formatDecimal(value: bigint, places: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  const fraction = places === 0 ? '' : digits.slice(-places).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}
