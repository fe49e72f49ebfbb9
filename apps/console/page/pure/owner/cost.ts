import { count } from '../format.ts';

/** What something costs. */
export interface Cost {
  /** Billionths of a credit per second: digits. */
  readonly nano: string;
  /** Whether what is not paid is refused, and later stopped. */
  readonly isEnforced: boolean;
}

/** What is known of a price: null where there is none to pay, `untold` where the core node did not say it in time. */
export type Quote = Cost | 'untold' | null;

const NANO = 1_000_000_000n;
const HOUR_SECONDS = 3_600n;
const DAY_SECONDS = 86_400n;
/** What a month is, in prices. */
const MONTH_DAYS = 30n;
/** A credit is a millionth of a dollar. */
const CREDITS_PER_CENT = 10_000n;

/** Less is told by the day alone. */
const CREDITS_TOLD_BY_HOUR = 10n;

/** Whole credits, to the nearest. */
const creditsOf = (nano: bigint) => (nano + NANO / 2n) / NANO;

/** Less than a cent is told with as many digits as it takes to see something. */
function dollars(credits: bigint): string {
  if (credits >= CREDITS_PER_CENT)
    return `$${(Number((credits * 100n) / (100n * CREDITS_PER_CENT)) / 100).toFixed(2)}`;
  return `$${(Number(credits) / 1_000_000).toPrecision(2)}`;
}

/** `14,250 credits an hour, 342,000 a day ($0.34), 10,260,000 in 30 days ($10.26)`. */
export function costText({ nano }: Pick<Cost, 'nano'>): string {
  const rate = BigInt(nano);
  if (rate === 0n) return 'nothing: no price is published';
  const perDay = rate * DAY_SECONDS;
  const [hour, day] = [creditsOf(rate * HOUR_SECONDS), creditsOf(perDay)];
  const month = creditsOf(perDay * MONTH_DAYS);
  if (day === 0n) return 'less than a credit a day';
  const told = `${count(day)} a day (${dollars(day)}), ${count(month)} in ${MONTH_DAYS} days (${dollars(month)})`;
  return hour < CREDITS_TOLD_BY_HOUR
    ? told.replace(' a day', day === 1n ? ' credit a day' : ' credits a day')
    : `${count(hour)} credits an hour, ${told}`;
}

/** What follows when nobody pays. */
export const enforcementText = ({ isEnforced }: Pick<Cost, 'isEnforced'>) =>
  isEnforced
    ? 'Without credit for a day of everything you have, it is refused; later it is stopped.'
    : 'Nothing is stopped when your credit is used up.';
