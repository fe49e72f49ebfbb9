import type { SimDatabases } from '../databases.ts';
import { type LyingOptions, type LyingResult, simulateLying } from './lying.ts';

type Shape = Omit<LyingOptions, 'isLying'>;

/** A run without the liar and the same with it: what is not as it must be in either, and where they end otherwise. */
export async function findLyingFaults(
  shape: Shape,
  databases?: SimDatabases,
): Promise<{ readonly faults: readonly string[]; readonly lying: LyingResult }> {
  const honest = await simulateLying({ ...shape, isLying: false }, databases);
  const lying = await simulateLying({ ...shape, isLying: true }, databases);
  const otherwise = honest.outcomes.flatMap((outcome, at) =>
    outcome === lying.outcomes[at] ? [] : [`without the liar: ${outcome}; with it: ${lying.outcomes[at]}`],
  );
  return {
    faults: [
      ...honest.faults.map((fault) => `without the liar: ${fault}`),
      ...lying.faults.map((fault) => `with it: ${fault}`),
      ...otherwise,
    ],
    lying,
  };
}

/** A line of the table. */
export function describeLying(
  { seed, nodes, steps }: Shape,
  { outcomes, rounds, calls, lies }: LyingResult,
): string {
  const told = [...lies].map(([lie, count]) => `${lie} ${count}`).join(', ');
  return `seed ${seed}, ${nodes} nodes, ${steps} steps: ${outcomes.length} messages, agreed after ${rounds} rounds, the liar was asked ${calls} times (${told})`;
}
