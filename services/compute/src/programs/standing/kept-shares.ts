import { AppError } from '@skerry/protocol';
import type { Place } from '../places.ts';

/** Of what all kept programs may have together, what is an owner's, whoever comes after. */
const OWNER_SHARE = 1 / 2;

/** A program that is kept running, or is to be. */
export interface Kept {
  readonly owner: string;
  readonly memoryMib: number;
}

export const keptIn = (place: Place) => ({ place, owner: place.owner, memoryMib: place.reservedMib });

/** What a program ended for. A call that was in it was begun. */
export const gaveWay = () =>
  new AppError(
    'PROGRAM_CRASHED',
    'another owner needs the memory, of which this one has more than its share',
  );

const sumOf = (list: readonly Kept[]) => list.reduce((sum, { memoryMib }) => sum + memoryMib, 0);

/**
 * Which programs end so that another one is kept: those of owners with more than their share, of the one with most first, the largest of
 * its programs. Pure.
 * @param limitMib what all may have together
 * @throws AppError NO_RUNNER where that is no room, or where its own owner would have more than a share
 */
export function chooseToGiveWay<K extends Kept>(kept: readonly K[], asked: Kept, limitMib: number): K[] {
  const shareMib = Math.floor(limitMib * OWNER_SHARE);
  const left = new Set(kept);
  const heldBy = (owner: string) => sumOf([...left].filter((one) => one.owner === owner));
  const isOverShare = heldBy(asked.owner) + asked.memoryMib > shareMib;
  const going: K[] = [];
  while (sumOf([...left]) + asked.memoryMib > limitMib) {
    const [most] = [...left].toSorted(
      (one, other) => heldBy(other.owner) - heldBy(one.owner) || other.memoryMib - one.memoryMib,
    );
    if (isOverShare || !most || heldBy(most.owner) <= shareMib)
      throw new AppError(
        'NO_RUNNER',
        `programs that are kept running have ${limitMib} MiB on this node; those of one owner ${shareMib} MiB, unless nobody else needs the rest`,
      );
    left.delete(most);
    going.push(most);
  }
  return going;
}
