import {
  CREDITS_PER_DOLLAR,
  creditsOf,
  floorDivide,
  formatDecimal,
  NANO_PER_CREDIT,
  wholeCreditsOf,
} from './amounts.ts';

/**
 * Credits as people read them, the same on the command line and in the console (docs/credit.md, "How amounts are shown").
 * Amounts are billionths of a credit.
 */

/** For so long costs are told. Seconds; a month has 30 days. */
const PERIODS = { hour: 3_600n, day: 86_400n, month: 2_592_000n } as const;
export type CostPeriod = keyof typeof PERIODS;

/** Thousands apart: `12,345`. `Intl` loads its tables first, which was half of what the scripts of the console's first load took. */
export const grouped = (whole: bigint | string): string => String(whole).replace(/\B(?=(\d{3})+$)/g, ',');

/** `12,345.67`, with all its digits. @param value of `10^-places` */
export function showDecimal(value: bigint, places: number): string {
  const [whole = '', ...fraction] = formatDecimal(value, places).split('.');
  return [grouped(whole), ...fraction].join('.');
}

/** @param value of `10^-places` */
const roundedTo = (decimals: number, value: bigint, places: number): string =>
  showDecimal(floorDivide(value, 10n ** BigInt(places - decimals)), decimals);

const digitsOf = (value: bigint) => String(value < 0n ? -value : value).length;

const NANO_PLACES = 9;
/** Below a thousand credits so many decimals, below one so many digits that say something. */
const CREDIT_DECIMALS = 2;
const CREDIT_DIGITS = 3;
const WHOLE_DIGITS = 4;

/** `12,345`; below a thousand with decimals: `13.67`, `0.651`. Rounded towards less. */
export function showCredits(nano: bigint): string {
  const whole = wholeCreditsOf(nano);
  const digits = digitsOf(nano);
  if (whole !== undefined || digits >= NANO_PLACES + WHOLE_DIGITS) return grouped(whole ?? creditsOf(nano));
  const decimals =
    digits > NANO_PLACES ? CREDIT_DECIMALS : Math.min(NANO_PLACES, NANO_PLACES - digits + CREDIT_DIGITS);
  return roundedTo(decimals, nano, NANO_PLACES);
}

const DOLLAR_PLACES = digitsOf(NANO_PER_CREDIT * CREDITS_PER_DOLLAR) - 1;
const CENT_DECIMALS = 2;

/** `$4.99`; what is less than a dollar with two digits that say something: `$0.014`. Rounded towards less. */
export function showDollars(nano: bigint): string {
  const whole = wholeCreditsOf(nano);
  const value = whole === undefined ? nano : whole * NANO_PER_CREDIT;
  const decimals = Math.min(
    DOLLAR_PLACES,
    Math.max(CENT_DECIMALS, DOLLAR_PLACES - digitsOf(value) + CENT_DECIMALS),
  );
  const [dollars = '', fraction] = roundedTo(decimals, value, DOLLAR_PLACES).split('.');
  const shown = fraction === undefined ? dollars : `${dollars}.${fraction.padEnd(CENT_DECIMALS, '0')}`;
  return shown.startsWith('-') ? `-$${shown.slice(1)}` : `$${shown}`;
}

/** What a rate comes to. @param rate billionths of a credit per second */
export const costIn = (period: CostPeriod, rate: bigint): bigint => rate * PERIODS[period];

/**
 * What a price comes to, as whoever set it meant it: the roundest whole credits that make this price once they are rounded to
 * a billionth per second. 20,000 a GiB and month are 7,535 a MiB and second, which come to 19,999.457.
 * @param price billionths of a credit per second, of one of `count`
 */
export function priceIn(period: CostPeriod, price: bigint, count = 1): bigint {
  const step = BigInt(count) * PERIODS[period];
  const exact = price * step;
  for (let round = 10n ** BigInt(digitsOf(exact)); round >= NANO_PER_CREDIT; round /= 10n) {
    const nearest = floorDivide(exact + round / 2n, round) * round;
    const off = nearest < exact ? exact - nearest : nearest - exact;
    if (nearest > 0n && off < step) return nearest;
  }
  return exact;
}
