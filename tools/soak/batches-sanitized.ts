import assert from 'node:assert/strict';
import {
  type BatchCheck,
  loadBatchCheck,
  VERDICTS,
} from '../../services/core/src/intake/verify/batch/addon.ts';
import { buildBatchAddon } from '../../services/core/src/intake/verify/batch/build-addon.ts';
import { CLAIMS_MAX } from '../../services/core/src/intake/verify/batch/claims.ts';
import { SeededDice } from '../../services/core/src/sim/testing/dice.ts';
import { SANITIZER_FLAGS } from '../../services/gateway/src/dataplane/native/build.ts';
import { compareMutants } from './batches.ts';
import { withDirectory } from './options.ts';
import { assertEach } from './run/counts.ts';

/** The library's own C in the place of its assembly, which needs a register that the sanitizers take, and which they do not see. */
const FLAGS = [...SANITIZER_FLAGS, '-UUSE_ASM_X86_64'];
const CLAIM_BYTES = 100;
const KEY_BYTES = 64;
const AT_ONCE = 500;
/** The rest of the time is for mutants. */
const SHARE_OF_JUNK = 0.2;

/** A buffer of exactly so many bytes, so that whatever is read beyond its end is seen. */
const draw = (dice: SeededDice, length: number) =>
  new Uint8Array(new ArrayBuffer(length)).map(() => (dice.chance(0.5) ? 0 : dice.below(256)));

/** Claims and keys of any length, numbers of keys that are not there: a verdict, and never that it holds. */
function judgeJunk(check: BatchCheck, seconds: number, dice: SeededDice): number {
  const lengthOf = (unit: number) =>
    dice.below(CLAIMS_MAX / 8) * unit + (dice.chance(0.2) ? dice.below(unit) : 0);
  let count = 0;
  for (const end = performance.now() + seconds * 1000; performance.now() < end; count++) {
    const claims = dice.chance(0.02) ? (CLAIMS_MAX + dice.below(3)) * CLAIM_BYTES : lengthOf(CLAIM_BYTES);
    const verdict = check(draw(dice, claims), draw(dice, lengthOf(KEY_BYTES)));
    assert.ok(claims === 0 || verdict !== VERDICTS.holds, `junk of ${claims} bytes holds`);
  }
  return count;
}

const [seconds, seed] = process.argv.slice(2).map(Number) as [number, number];
await withDirectory(async (directory) => {
  const built = await buildBatchAddon(directory, undefined, FLAGS);
  if ('missing' in built) throw new Error(`batches cannot be built with sanitizers here: ${built.missing}`);
  const check = loadBatchCheck(built.path);
  const count = judgeJunk(check, seconds * SHARE_OF_JUNK, new SeededDice(seed));
  assertEach({ junk: count });
  console.log(`${count} batches of junk, no finding of the sanitizers`);
  compareMutants(check, { seconds: seconds * (1 - SHARE_OF_JUNK), seed }, AT_ONCE);
});
