import { endTestServer } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { SimDatabases } from '../../../services/core/src/sim/testing/databases.ts';
import type { SoakOptions } from '../options.ts';
import { assertEach } from '../run/counts.ts';

/** A run that takes longer stands still. */
const RUN_LIMIT_MS = 30 * 60_000;

export interface SeedRun {
  /** What it came to, for the table. */
  readonly line: string;
  /** What is not as it must be; empty for a good run. */
  readonly faults: readonly string[];
}

/** Runs of one simulation, each of which follows from its seed. */
export interface Seeded {
  /** Of the soak. */
  readonly name: string;
  run(seed: number, databases: SimDatabases): Promise<SeedRun>;
}

async function findFaults(
  { name, run }: Seeded,
  seed: number,
  databases: SimDatabases,
): Promise<readonly string[]> {
  const standing = setTimeout(() => {
    console.log(`FAULT seed ${seed} stands still; ${replayOf(name, seed)}`);
    process.exit(1);
  }, RUN_LIMIT_MS);
  const startMs = performance.now();
  try {
    const { line, faults } = await run(seed, databases);
    console.log(`${line}; ${Math.round(performance.now() - startMs)} ms`);
    return faults;
  } catch (error) {
    return [`it threw ${error instanceof Error ? error.stack : String(error)}`];
  } finally {
    clearTimeout(standing);
  }
}

const replayOf = (name: string, seed: number) => `npm run soak -- ${name} --seed ${seed} --seeds 1`;

/** Fresh seeds, one after another: for so many seconds, or so many of them (`--seeds N`). */
export async function soakSeeds(seeded: Seeded, { seconds, seed, seeds }: SoakOptions): Promise<void> {
  const count = seeds ?? Number.POSITIVE_INFINITY;
  const startMs = performance.now();
  const endMs = seeds === undefined ? startMs + seconds * 1000 : Number.POSITIVE_INFINITY;
  await using stack = new AsyncDisposableStack();
  stack.defer(endTestServer);
  const databases = stack.use(new SimDatabases(createLogger(seeded.name, 'silent')));
  const bad: number[] = [];
  let runs = 0;
  for (; runs < count && performance.now() < endMs; runs++) {
    const faults = await findFaults(seeded, seed + runs, databases);
    if (faults.length === 0) continue;
    bad.push(seed + runs);
    console.log(
      `FAULT seed ${seed + runs}\n  ${faults.join('\n  ')}\n  again: ${replayOf(seeded.name, seed + runs)}`,
    );
  }
  const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
  console.log(
    `${runs} seeds from ${seed} on in ${minutes} minutes, ${bad.length} with faults ${bad.join(' ')}`,
  );
  assertEach({ runs });
  if (bad.length > 0) process.exitCode = 1;
}
