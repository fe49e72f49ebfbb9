import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BatchCheck } from '../../services/core/src/intake/verify/batch/addon.ts';
import { checkForTests } from '../../services/core/src/intake/verify/batch/testing/built.ts';
import {
  compareMutant,
  signSome,
  startComparison,
} from '../../services/core/src/intake/verify/batch/testing/mutants.ts';
import { SeededDice } from '../../services/core/src/sim/testing/dice.ts';
import type { SoakOptions } from './options.ts';
import { assertEach } from './run/counts.ts';

const AT_ONCE = 10_000;
const SANITIZED = fileURLToPath(new URL('./batches-sanitized.ts', import.meta.url));
const LIBRARIES = ['libasan.so', 'libubsan.so'];

/** Mutated signatures, each in a batch and by recovery: the verdicts must be the same. */
export function compareMutants(check: BatchCheck, { seconds, seed }: SoakOptions, atOnce = AT_ONCE): void {
  const all = signSome();
  const dice = new SeededDice(seed);
  const found = startComparison();
  let count = 0;
  for (const end = performance.now() + seconds * 1000; performance.now() < end; count += atOnce) {
    for (let at = 0; at < atOnce; at++) compareMutant(check, all, dice, found);
    assert.deepEqual(found.differences, []);
  }
  const { valid, invalid, malformed } = found;
  console.log(`${count} mutants, no difference (${valid} valid, ${invalid} not, ${malformed} malformed)`);
  assertEach({ valid, invalid, malformed });
}

export async function soakBatches(options: SoakOptions): Promise<void> {
  compareMutants(await checkForTests(), options);
}

/** The same under AddressSanitizer and UndefinedBehaviorSanitizer, with bytes that nobody packed beside them. */
export async function soakSanitizedBatches({ seconds, seed }: SoakOptions): Promise<void> {
  const pathOf = (name: string) =>
    execFileSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();
  execFileSync(process.execPath, [SANITIZED, String(seconds), String(seed)], {
    stdio: 'inherit',
    env: {
      ...process.env,
      // Both belong to the program: an addon of one that has none cannot bring them.
      LD_PRELOAD: LIBRARIES.map(pathOf).join(' '),
      // Node keeps what it has until it ends.
      ASAN_OPTIONS: 'detect_leaks=0',
      UBSAN_OPTIONS: 'print_stacktrace=1',
    },
  });
}
