import type { Figure, Goal, Spread } from './figure.ts';
import { describeFigure } from './text.ts';

interface More {
  /** One ratio for each round. */
  readonly ratio?: { readonly to: string; readonly values: readonly number[] } | undefined;
  readonly goal?: Goal | undefined;
}

/** Digits that are kept: the machine's noise is larger. */
const DIGITS = 4;
const round = (value: number) => Number(value.toPrecision(DIGITS));

/** The value below which a part of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** Of an even number, between the two in the middle: two rounds favour neither. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [below = Number.NaN, above = below] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (below + above) / 2;
}

/** @param values at least one */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0 || values.some((value) => !Number.isFinite(value)))
    throw new Error(`these are no figures: ${values.join(', ')}`);
  return {
    median: round(median(values)),
    lowest: round(Math.min(...values)),
    highest: round(Math.max(...values)),
  };
}

/** What a bench found. It says each figure at once, in one line, and keeps it. */
export class Figures {
  readonly rows: Figure[] = [];
  /** What it could not measure on this machine. */
  readonly lacking: string[] = [];
  readonly #say: (line: string) => void;
  #group = '';

  /** @param say takes lines for people */
  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** Begins a group: what the figures that follow are about. */
  group(title: string): void {
    this.#group = title;
    this.#say(`\n${title}`);
  }

  /** Says what is not measured. @param what a program or package that is not here */
  lack(what: string): void {
    this.lacking.push(what);
    this.#say(`not measured: ${what} is not here`);
  }

  /**
   * A figure: one value, or one of each round.
   * @param unit behind the number, such as `ms` or `/s`; empty for a plain number
   */
  add(what: string, unit: string, values: number | readonly number[], { ratio, goal }: More = {}): void {
    const list = typeof values === 'number' ? [values] : values;
    this.#take({
      group: this.#group,
      what,
      unit,
      ...spreadOf(list),
      rounds: list.length,
      ...(ratio && { ratio: { to: ratio.to, ...spreadOf(ratio.values) } }),
      ...(goal && { goal }),
    });
  }

  /** A figure of many requests, with its quantiles: one time of each, in milliseconds. */
  addTimes(what: string, times: readonly number[], { ratio, goal }: More = {}): void {
    this.#take({
      group: this.#group,
      what,
      unit: 'ms',
      ...spreadOf(times),
      p95: round(quantile(times, 0.95)),
      p99: round(quantile(times, 0.99)),
      rounds: times.length,
      ...(ratio && { ratio: { to: ratio.to, ...spreadOf(ratio.values) } }),
      ...(goal && { goal }),
    });
  }

  #take(figure: Figure): void {
    if (this.rows.some(({ group, what }) => group === figure.group && what === figure.what))
      throw new Error(`two figures of one bench are called "${figure.group}", "${figure.what}"`);
    this.rows.push(figure);
    this.#say(describeFigure(figure));
  }
}

/** What a bench is doing, and what is no figure: for people who wait. */
export const tell = (line: string): void => console.error(line);
