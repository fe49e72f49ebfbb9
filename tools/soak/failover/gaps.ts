import type { Fault } from './faults.ts';
import { say } from './say.ts';

/** For how long nothing was acknowledged around a fault, in milliseconds. */
export interface Gap extends Pick<Fault, 'name' | 'takes'> {
  /** By each process that answers. */
  readonly each: readonly number[];
  /** Nobody led for so long. */
  readonly lead: number;
}

const percentile = (values: readonly number[], part: number) =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)] ?? 0;

/** The middle and the greatest of some times. */
function describe(times: readonly number[]): string {
  const [middle, most] = [percentile(times, 0.5), Math.max(...times)].map((ms) => (ms / 1_000).toFixed(1));
  return `${middle} s (p50), ${most} s (max)`;
}

/** @param names of the processes that answer */
export function tellGaps(gaps: readonly Gap[], names: readonly string[]): void {
  for (const [name, own] of Map.groupBy(gaps, (gap) => gap.name)) {
    const worst = own.map(({ each }) => Math.max(...each));
    const best = own.map(({ each }) => Math.min(...each));
    say(
      `${name}, ${own.length} times: ${describe(worst)} by the worst process, ${describe(best)} by the best; nobody led for ${describe(own.map(({ lead }) => lead))}`,
    );
  }
  const failovers = gaps.filter(({ takes }) => takes === 'database');
  if (failovers.length === 0) return;
  const worst = failovers.map(({ each }) => Math.max(...each));
  const each = names.map((name, node) => `${name} ${describe(failovers.map((gap) => gap.each[node]!))}`);
  say(
    `${failovers.length} failovers of the database: unavailable for ${describe(worst)}; ${each.join(', ')}`,
  );
}
