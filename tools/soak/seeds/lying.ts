import { SeededDice } from '../../../services/core/src/sim/testing/dice.ts';
import { describeLying, findLyingFaults } from '../../../services/core/src/sim/testing/lies/compare.ts';
import type { SoakOptions } from '../options.ts';
import { soakSeeds } from './seeds.ts';

const NODES = [3, 3, 4, 5] as const;
const STEPS_MIN = 40;
const STEPS_MORE = 160;

/** What a run is like follows from its seed, so that the seed alone repeats it. */
function shapeOf(seed: number) {
  const dice = new SeededDice(seed ^ 0x5a5a_5a5a);
  return { seed, nodes: NODES[dice.below(NODES.length)]!, steps: STEPS_MIN + dice.below(STEPS_MORE) };
}

export const soakLying = (options: SoakOptions): Promise<void> =>
  soakSeeds(
    {
      name: 'lying',
      async run(seed, databases) {
        const shape = shapeOf(seed);
        const { faults, lying } = await findLyingFaults(shape, databases);
        return { line: describeLying(shape, lying), faults };
      },
    },
    options,
  );
