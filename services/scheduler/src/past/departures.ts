import { type Departure, nextDeparture } from '../planning/departures.ts';

/** A placement as it was told, oldest first: which node has the instance since, and which one lost it. */
export interface Move {
  /** Milliseconds, of whatever clock the departures are wanted in. */
  readonly atMs: number;
  /** null: it waits. */
  readonly to: string | null;
  /** null where it had none, or it is not known. */
  readonly from: string | null;
  /** Whether `from` had fallen silent; else it had left by itself. */
  readonly isSilent: boolean;
}

/**
 * Which nodes lost what they held, as placements tell it: what a scheduler that was there has seen. A node that was given something had come
 * back before. Pure.
 *
 * @param moves oldest first
 */
export function departuresOf(moves: Iterable<Move>, graceMs: number): Map<string, Departure> {
  const known = new Map<string, Departure>();
  for (const { atMs, to, from, isSilent } of moves) {
    const back = to === null ? undefined : known.get(to);
    if (back?.isAway) known.set(to!, { ...back, fromMs: back.isSilent ? atMs : back.fromMs, isAway: false });
    const before = from === null ? undefined : known.get(from);
    // One silence is one departure, however many instances are told of.
    if (from === null || before?.isAway) continue;
    if (isSilent && before?.isSilent && atMs - before.leftMs < graceMs) continue;
    known.set(from, nextDeparture(before, atMs, isSilent, graceMs));
  }
  return known;
}
