/** What becomes of an account's credit, and what became of it. */

const NANO = 1_000_000_000n;

/** What of an account tells how long its credit lasts. */
interface Spending {
  readonly credit_balance_nano: bigint;
  readonly credit_rate_nano: bigint;
  /** Unix seconds; where nothing is left, the second of the answer. */
  readonly runs_out_at: number | null;
}

/** How long credit lasts: until a moment that is to come, or no longer. */
export type Lasting =
  | { readonly kind: 'free' }
  | { readonly kind: 'used-up' }
  | { readonly kind: 'until'; readonly ms: number };

/** A core node names a moment where nothing is left, too: it is that of its answer, and no promise. */
export function lastingOf(spending: Spending, nowMs: number): Lasting {
  const { credit_balance_nano: balance, credit_rate_nano: rate, runs_out_at: end } = spending;
  if (rate === 0n || end === null) return { kind: 'free' };
  const ms = end * 1_000;
  return balance <= 0n || ms <= nowMs ? { kind: 'used-up' } : { kind: 'until', ms };
}

/** What becomes of machines that nobody pays for. @param isEnforced undefined: not known yet */
export const whenUsedUp = (isEnforced: boolean | undefined): string =>
  isEnforced === undefined
    ? 'nothing is left'
    : isEnforced
      ? 'nothing is left: machines are stopped after a warning'
      : 'nothing is left, and nothing is stopped for it';

/** A line of an account. */
export interface AccountLine {
  readonly nano: bigint;
  /** Unix seconds. */
  readonly time: number;
}

export interface BalancePoint {
  /** Unix milliseconds. */
  readonly x: number;
  /** Whole and parts of credits. */
  readonly y: number;
}

const asNumber = (nano: bigint) => Number(nano) / Number(NANO);

/**
 * What was left after each line, oldest first, up to now.
 * @param lines newest first, as far as they are known: the balance before the oldest follows from the others
 */
export function balanceOver(nowNano: bigint, nowMs: number, lines: readonly AccountLine[]): BalancePoint[] {
  const points: BalancePoint[] = [{ x: nowMs, y: asNumber(nowNano) }];
  let nano = nowNano;
  for (const line of lines) {
    const x = line.time * 1_000;
    points.push({ x, y: asNumber(nano) });
    nano -= line.nano;
    // Credit comes at once, and goes little by little.
    if (line.nano > 0n) points.push({ x: x - 1, y: asNumber(nano) });
  }
  return points.reverse();
}

/**
 * What was used up after each charge, oldest first, up to now.
 * @param charges newest first, each below zero
 * @param usedNano what was used in all, where there are older charges; undefined: these are all
 */
export function usedOver(
  nowMs: number,
  charges: readonly AccountLine[],
  usedNano: bigint | undefined,
): BalancePoint[] {
  let nano = usedNano === undefined ? 0n : charges.reduce((before, charge) => before + charge.nano, usedNano);
  const points = charges.toReversed().map((charge) => {
    nano -= charge.nano;
    return { x: charge.time * 1_000, y: asNumber(nano) };
  });
  return [...points, { x: nowMs, y: asNumber(nano) }];
}

/** What adding an account up came to: nobody is said to have lied because there are more lines than were read. */
export const addedUpState = (result: {
  readonly isSame: boolean;
  readonly isCut: boolean;
  readonly refused: readonly unknown[];
}): 'equal' | 'different' | 'cut' =>
  result.isSame ? 'equal' : result.isCut && result.refused.length === 0 ? 'cut' : 'different';
