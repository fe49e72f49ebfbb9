import type { Outcome, Result } from './call.ts';

export type Counts = Readonly<Record<Outcome, number>>;

const OUTCOMES: readonly Outcome[] = ['works', 'fails', 'theirs', 'not offered'];

export const countOutcomes = (results: readonly Result[]): Counts =>
  Object.fromEntries(
    OUTCOMES.map((outcome) => [outcome, results.filter((one) => one.outcome === outcome).length]),
  ) as unknown as Counts;

/** A line for each call, in columns, and the counts. */
export function renderResults(results: readonly Result[], counts: Counts): string {
  const width = Math.max(0, ...results.map(({ call }) => call.length));
  const lines = results.map(({ call, outcome, why }) =>
    `${call.padEnd(width)}  ${outcome.padEnd(11)}  ${why}`.trimEnd(),
  );
  const sums = OUTCOMES.map((outcome) => `${counts[outcome]} ${outcome}`).join(', ');
  return `${[...lines, '', `${results.length} calls: ${sums}`].join('\n')}\n`;
}
