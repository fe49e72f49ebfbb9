import type { CoreClient } from '@skerry/client';
import type { Departures } from '../planning/departures.ts';
import { departuresOf } from './departures.ts';
import { movesOf, readTold } from './moves.ts';

export interface LearnOptions {
  readonly core: CoreClient;
  readonly departures: Departures;
  /** Whether the operator vouches for the node of this address. */
  readonly isListed: (nodeAddress: string) => boolean;
  readonly graceMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Milliseconds of a clock that nobody sets. */
  readonly uptime: () => number;
  readonly signal: AbortSignal;
}

/**
 * Learns from the placements of all schedulers which nodes lost what they held while this one was not there: who takes over on another server
 * holds them back as long as the one before it would have.
 *
 * @returns nodes of which something is known now
 */
export async function learnDepartures(options: LearnOptions): Promise<string[]> {
  const { core, departures, isListed, graceMs, now, uptime, signal } = options;
  const told = await readTold(core, now(), signal);
  const [unixMs, uptimeMs] = [now(), uptime()];
  const moves = movesOf(told, (address) => !isListed(address)).map((move) => ({
    ...move,
    // What a clock that was ahead dated is of now.
    atMs: uptimeMs - Math.max(0, unixMs - move.atMs),
  }));
  return departures.learn(departuresOf(moves, graceMs), uptimeMs);
}
