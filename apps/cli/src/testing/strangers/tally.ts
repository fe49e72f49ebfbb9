/** What every population tried and what became of it. */

export interface Wrong {
  readonly who: string;
  readonly what: string;
  readonly why: string;
}

interface Account {
  tried: number;
  taken: number;
  readonly refusals: Map<string, number>;
  readonly latenciesMs: number[];
}

/** Latencies that are kept of one account; more would be memory, not knowledge. */
const LATENCIES_MAX = 200_000;
/** Faults that are kept as text; the others are counted. */
const WRONG_MAX = 50;

export type Phase = 'quiet' | 'hostile';

const percentile = (sorted: readonly number[], share: number) =>
  sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;

export class Tally {
  phase: Phase = 'quiet';
  wrongCount = 0;
  readonly wrong: Wrong[] = [];
  readonly #accounts = new Map<string, Account>();

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { tried: 0, taken: 0, refusals: new Map(), latenciesMs: [] };
      this.#accounts.set(name, account);
    }
    return account;
  }

  /** An honest request: whatever is not the answer that the person expects is a fault. */
  honest(who: string, what: string, tookMs: number, failure?: string): void {
    const account = this.#account(`${this.phase}/${who}`);
    account.tried++;
    if (account.latenciesMs.length < LATENCIES_MAX) account.latenciesMs.push(tookMs);
    if (failure === undefined) account.taken++;
    else this.fault(who, what, failure);
  }

  fault(who: string, what: string, why: string): void {
    this.wrongCount++;
    if (this.wrong.length < WRONG_MAX) this.wrong.push({ who, what, why });
  }

  /** A hostile try: taken, or refused with a code. */
  hostile(who: string, refusal?: string): void {
    const account = this.#account(`hostile population/${who}`);
    account.tried++;
    if (refusal === undefined) account.taken++;
    else account.refusals.set(refusal, (account.refusals.get(refusal) ?? 0) + 1);
  }

  /** Requests, answers as expected, p50 and p99 in milliseconds of each kind of honest user, by phase. */
  honestRows(phase: Phase): { who: string; tried: number; taken: number; p50: number; p99: number }[] {
    return [...this.#accounts].flatMap(([name, { tried, taken, latenciesMs }]) => {
      if (!name.startsWith(`${phase}/`)) return [];
      const sorted = latenciesMs.toSorted((one, other) => one - other);
      const who = name.slice(phase.length + 1);
      return [{ who, tried, taken, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }];
    });
  }

  hostileRows(): { who: string; tried: number; taken: number; refusals: string }[] {
    const prefix = 'hostile population/';
    return [...this.#accounts].flatMap(([name, { tried, taken, refusals }]) =>
      name.startsWith(prefix)
        ? [
            {
              who: name.slice(prefix.length),
              tried,
              taken,
              refusals: [...refusals]
                .sort(([, one], [, other]) => other - one)
                .map(([code, count]) => `${code} ${count}`)
                .join(', '),
            },
          ]
        : [],
    );
  }
}
