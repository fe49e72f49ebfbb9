import { costIn, showCredits, showDollars } from '@skerry/protocol/credit/shown';

/** What something costs. */
export interface Cost {
  /** Billionths of a credit per second: digits. */
  readonly nano: string;
  /** Whether what is not paid is refused, and later stopped. */
  readonly isEnforced: boolean;
}

/** What is known of a price: null where there is none to pay, `untold` where the core node did not say it in time. */
export type Quote = Cost | 'untold' | null;

/** Less is told by the day alone. */
const TOLD_BY_HOUR_NANO = 10_000_000_000n;

/** `14,250 credits an hour, 342,000 a day ($0.34), 10,260,000 in 30 days ($10.26)`. */
export function costText({ nano }: Pick<Cost, 'nano'>): string {
  const rate = BigInt(nano);
  if (rate === 0n) return 'nothing: no price is published';
  const [hour, day, month] = [costIn('hour', rate), costIn('day', rate), costIn('month', rate)];
  const isByHour = hour >= TOLD_BY_HOUR_NANO;
  const unit = showCredits(day) === '1' ? 'credit' : 'credits';
  return [
    ...(isByHour ? [`${showCredits(hour)} credits an hour`] : []),
    `${showCredits(day)}${isByHour ? '' : ` ${unit}`} a day (${showDollars(day)})`,
    `${showCredits(month)} in 30 days (${showDollars(month)})`,
  ].join(', ');
}

/** What follows when nobody pays. */
export const enforcementText = ({ isEnforced }: Pick<Cost, 'isEnforced'>) =>
  isEnforced
    ? 'Without credit for a day of everything you have, it is refused; later it is stopped.'
    : 'Nothing is stopped when your credit is used up.';
