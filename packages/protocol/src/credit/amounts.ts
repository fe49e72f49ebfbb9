/**
 * Credits: a million of them are one US dollar. What is bought are whole credits; what is used is counted in billionths,
 * so that a cost per second is a whole number and nothing is ever rounded but for display.
 */
export const NANO_PER_CREDIT = 1_000_000_000n;
export const CREDITS_PER_DOLLAR = 1_000_000n;

/** @param credits whole */
export const nanoOf = (credits: number | bigint): bigint => BigInt(credits) * NANO_PER_CREDIT;

/** Whole credits, rounded towards less: nobody is shown what they do not have. */
export function creditsOf(nano: bigint): bigint {
  const whole = nano / NANO_PER_CREDIT;
  return nano < 0n && nano % NANO_PER_CREDIT !== 0n ? whole - 1n : whole;
}

/** A whole number of `10^-places` as decimal text without trailing zeros: `formatDecimal(1500n, 3)` is `1.5`. */
export function formatDecimal(value: bigint, places: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, '0');
  const whole = digits.slice(0, digits.length - places);
  const fraction = places === 0 ? '' : digits.slice(-places).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}
