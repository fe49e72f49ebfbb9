import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { pause, writeFileAtomically } from '@skerry/kit';

/** Between two dumps of a state, however small: what a kill can cost. */
const REST_MS = 5_000;
/** A state has every block since the first. Written every few seconds, one that grows for a day would be terabytes. */
const BYTES_PER_SECOND = 64 * 1024;
/** After tries in vain: of a chain that does not answer, or whose state is too large. */
const REST_MAX_MS = 600_000;
/** A state is held in memory while it is written. What is larger is written by the chain alone, when it ends. */
const STATE_BYTES_MAX = 256 * 1024 ** 2;

const unzip = promisify(gunzip);

/** What a chain is asked. */
export type Ask = (method: string) => Promise<string>;

/**
 * How long a state that was just written stands before the next is, in milliseconds: on average no more than BYTES_PER_SECOND are
 * written. Pure.
 */
export const restAfter = (bytes: number): number =>
  Math.max(REST_MS, Math.ceil((bytes / BYTES_PER_SECOND) * 1_000));

/**
 * Writes the state of a chain that has new blocks, or another state in its place: whoever starts with the file finds one that is whole.
 *
 * @param file of anvil's option --state
 * @param before the head of the state that is there
 * @returns the head that is there now, and how many bytes were written
 * @throws what `ask` throws; Error where the state is too large
 */
export async function dumpState(
  ask: Ask,
  file: string,
  before: string | undefined,
): Promise<{ readonly head: string; readonly bytes: number }> {
  const head = await ask('eth_blockNumber');
  if (head === before) return { head, bytes: 0 };
  const zipped = Buffer.from((await ask('anvil_dumpState')).slice('0x'.length), 'hex');
  const state = await unzip(zipped, { maxOutputLength: STATE_BYTES_MAX });
  await writeFileAtomically(file, state, 0o600);
  return { head, bytes: state.length };
}

/** Keeps the state in its file until the signal ends. A chain that does not answer is asked again: it may be starting anew. */
export async function keepDumping(
  ask: Ask,
  file: string,
  signal: AbortSignal,
  rest: typeof pause = pause,
): Promise<void> {
  let head: string | undefined;
  let restMs = REST_MS;
  while (await rest(restMs, signal)) {
    try {
      const dumped = await dumpState(ask, file, head);
      head = dumped.head;
      restMs = restAfter(dumped.bytes);
    } catch {
      head = undefined;
      restMs = Math.min(restMs * 2, REST_MAX_MS);
    }
  }
}
