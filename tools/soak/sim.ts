import { createLogger } from '@skerry/kit';
import { SimDatabases } from '../../services/core/src/sim/testing/databases.ts';
import { SeededDice } from '../../services/core/src/sim/testing/dice.ts';
import { describeRun, type SimOptions, simulate } from '../../services/core/src/sim/testing/simulate.ts';
import type { SoakOptions } from './options.ts';
import { assertEach } from './run/counts.ts';

const NODES = [3, 3, 4, 4, 5, 6] as const;
const STEPS_MIN = 40;
const STEPS_MORE = 160;
const HONEST_SHARE = 0.25;
/** A run that takes longer stands still. */
const RUN_LIMIT_MS = 30 * 60_000;

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

async function findFaults(options: SimOptions, databases: SimDatabases): Promise<readonly string[]> {
  const standing = setTimeout(() => {
    console.log(`FAULT seed ${options.seed} stands still; ${replayOf(options.seed)}`);
    process.exit(1);
  }, RUN_LIMIT_MS);
  try {
    const result = await simulate(options, databases);
    console.log(`${describeRun(options, result)}; ${Math.round(result.elapsedMs)} ms`);
    return result.faults;
  } catch (error) {
    return [`it threw ${error instanceof Error ? error.stack : String(error)}`];
  } finally {
    clearTimeout(standing);
  }
}

const replayOf = (seed: number) => `npm run soak -- sim --seed ${seed} --seeds 1`;

/** Fresh seeds, one after another: for so many seconds, or so many of them (`--seeds N`). */
export async function soakSim({ seconds, seed, seeds }: SoakOptions): Promise<void> {
  const count = seeds ?? Number.POSITIVE_INFINITY;
  const startMs = performance.now();
  const endMs = seeds === undefined ? startMs + seconds * 1000 : Number.POSITIVE_INFINITY;
  await using databases = new SimDatabases(createLogger('sim', 'silent'));
  const bad: number[] = [];
  let runs = 0;
  for (; runs < count && performance.now() < endMs; runs++) {
    const options = shapeOf(seed + runs);
    const faults = await findFaults(options, databases);
    if (faults.length === 0) continue;
    bad.push(options.seed);
    console.log(
      `FAULT ${JSON.stringify(options)}\n  ${faults.join('\n  ')}\n  again: ${replayOf(options.seed)}`,
    );
  }
  const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
  console.log(
    `${runs} seeds from ${seed} on in ${minutes} minutes, ${bad.length} with faults ${bad.join(' ')}`,
  );
  assertEach({ runs });
  if (bad.length > 0) process.exitCode = 1;
}
