import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { tell } from './measure/figures.ts';

/** Others may use this part of all processors while figures are taken. */
export const BUSY_MAX = 0.1;
const SAMPLE_MS = 3_000;
const SHORT_SAMPLE_MS = 1_000;
/** So many samples in a row, since a machine that builds something rests now and then. */
const SAMPLES = 3;
const TELL_EVERY_MS = 30_000;
export const WAIT_MINUTES = 10;
const MINUTE_MS = 60_000;

/** Ticks of all processors so far: at work, and in all (proc_stat(5); fields 4 and 5 are idle and waiting for the disk). */
function readTicks(): { busy: number; all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const fields = line.split(/\s+/).slice(1, 9).map(Number);
  const all = fields.reduce((sum, one) => sum + one, 0);
  return { busy: all - fields[3]! - fields[4]!, all };
}

/** The part of all processors that is in use during a moment, 0 to 1. */
export async function measureBusy(ms = SHORT_SAMPLE_MS): Promise<number> {
  const before = readTicks();
  await delay(ms);
  const after = readTicks();
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

const percent = (part: number) => `${Math.round(part * 100)} %`;

/**
 * Waits until others leave the machine alone, ten minutes at most, and says what it waits for.
 * @returns the part of all processors that is in use; undefined where they never did
 */
export async function waitForQuiet(
  measure: () => Promise<number> = () => measureBusy(SAMPLE_MS),
  limitMs = WAIT_MINUTES * MINUTE_MS,
): Promise<number | undefined> {
  const endMs = performance.now() + limitMs;
  let toldMs = -Infinity;
  for (let quiet = 0; ; ) {
    const busy = await measure();
    quiet = busy <= BUSY_MAX ? quiet + 1 : 0;
    const nowMs = performance.now();
    if (quiet >= SAMPLES) return busy;
    if (nowMs >= endMs) return undefined;
    if (busy <= BUSY_MAX || nowMs - toldMs < TELL_EVERY_MS) continue;
    toldMs = nowMs;
    const minutes = Math.ceil((endMs - nowMs) / MINUTE_MS);
    tell(
      `waiting until others use at most ${percent(BUSY_MAX)} of the processors; now ${percent(busy)}; for ${minutes} more minutes at most (--busy does not wait)`,
    );
  }
}
