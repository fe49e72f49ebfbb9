import { SeededDice } from '../../../services/core/src/sim/testing/dice.ts';
import { describeRun, type SimOptions, simulate } from '../../../services/core/src/sim/testing/simulate.ts';
import type { SoakOptions } from '../options.ts';
import { soakSeeds } from './seeds.ts';

const NODES = [3, 3, 4, 4, 5, 6] as const;
const STEPS_MIN = 40;
const STEPS_MORE = 160;
const HONEST_SHARE = 0.25;

/** What a run is like follows from its seed, so that the seed alone repeats it. */
function shapeOf(seed: number): SimOptions {
  const dice = new SeededDice(seed ^ 0x5a5a_5a5a);
  return {
    seed,
    nodes: NODES[dice.below(NODES.length)]!,
    steps: STEPS_MIN + dice.below(STEPS_MORE),
    isHostile: !dice.chance(HONEST_SHARE),
  };
}

export const soakSim = (options: SoakOptions): Promise<void> =>
  soakSeeds(
    {
      name: 'sim',
      async run(seed, databases) {
        const shape = shapeOf(seed);
        const result = await simulate(shape, databases);
        return { line: describeRun(shape, result), faults: result.faults };
      },
    },
    options,
  );
