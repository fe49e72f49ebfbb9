import { type Reason, SCORES_AGE_MAX_DAYS } from '@skerry/protocol';
import type { Resources } from '../view.ts';

/** Whose nodes get what strangers created: those that are listed, those that were measured too, or all that proved what they say. */
export const TRUST_LEVELS = ['listed', 'measured', 'all'] as const;
export type TrustLevel = (typeof TRUST_LEVELS)[number];

/** What trusted publishers say of a node. */
export interface Earned {
  /** 0 to 1. */
  readonly score: number;
  /** Hours of measurements that earned it. */
  readonly hours: number;
  /** Of a score that is too old to count: the time of the newest measurement behind it, Unix milliseconds. */
  readonly outdatedMs?: number;
}

/** The score that counts; null where there is none. Pure. */
export const scoreOf = (earned: Earned | null): number | null =>
  earned === null || earned.outdatedMs !== undefined ? null : earned.score;

/** Whether a trusted publisher measured the node and found it of use, however long ago. Pure. */
export const wasMeasured = (earned: Earned | null): boolean =>
  earned !== null && earned.score > 0 && earned.hours > 0;

/** The same of a score that counts. Pure. */
export const isMeasured = (earned: Earned | null): boolean => wasMeasured(earned) && scoreOf(earned) !== null;

/** How old scores are that count no longer, in words. @param outdatedMs Unix milliseconds */
export const agedWords = (outdatedMs: number) =>
  `of measurements up to ${new Date(outdatedMs).toISOString()}, older than ${SCORES_AGE_MAX_DAYS} days`;

export interface TrustFacts {
  readonly level: TrustLevel;
  /** The operator of this scheduler vouches for the node. */
  readonly isListed: boolean;
  readonly earned: Earned | null;
}

/** How far a node is believed. */
export interface Trust {
  /** Why it gets nothing, or null. */
  readonly against: Reason | null;
  /** The most of what it announces that counts; null where all does. */
  readonly room: Resources | null;
  /** In a sentence. */
  readonly words: string;
}

/** What an hour at a perfect score is worth. */
const ROOM_PER_HOUR: Resources = { cpu: 1, memoryMib: 2_048, diskGib: 20 };

/** The room that was earned: it grows with the score and with the hours measured, and with nothing that the node says. Pure. */
export function earnedRoom({ score, hours }: Earned): Resources {
  const { cpu, memoryMib, diskGib } = ROOM_PER_HOUR;
  const worth = score * hours;
  return {
    // Of a small node's first hour a core is left, or nothing would ever fit.
    cpu: Math.ceil(worth * cpu),
    memoryMib: Math.floor(worth * memoryMib),
    diskGib: Math.floor(worth * diskGib),
  };
}

const wordsOf = ({ cpu, memoryMib, diskGib }: Resources) =>
  `${cpu} cores, ${memoryMib} MiB and ${diskGib} GiB`;

/** Whether a node may get something new of strangers, and how much of what it announces counts. Pure. */
export function decideTrust({ level, isListed, earned }: TrustFacts): Trust {
  const outdated =
    earned?.outdatedMs === undefined
      ? null
      : `its score is ${agedWords(earned.outdatedMs)}, and counts no longer`;
  const but = outdated === null ? '' : `; ${outdated}`;
  if (isListed)
    return {
      against: null,
      room: null,
      words: `listed by the scheduler's operator: all its announced capacity counts${but}`,
    };
  if (level === 'all')
    return {
      against: null,
      room: null,
      words: `not listed; the scheduler accepts every node that proves its key and its network${but}`,
    };
  if (level === 'listed') return refuse(NOT_LISTED, "the scheduler's operator has not listed the node");
  if (outdated !== null) return refuse(NOT_MEASURED, `the node is not listed, and ${outdated}`);
  if (earned === null || !isMeasured(earned))
    return refuse(
      NOT_MEASURED,
      'the node is not listed, and no trusted score publisher gives it a score above zero',
    );
  const room = earnedRoom(earned);
  const { score, hours } = earned;
  return {
    against: null,
    room,
    words: `not listed; measured for ${hours} hours with a score of ${score}, worth up to ${wordsOf(room)}`,
  };
}

/**
 * Whether programs may be sent to a node. One whose score is only too old to count runs them as before, or a monitor that stops
 * would end them all. Pure.
 */
export const mayRunPrograms = (facts: TrustFacts): boolean =>
  decideTrust(facts).against === null || (facts.level === 'measured' && wasMeasured(facts.earned));

const NOT_LISTED = 'NODE_NOT_LISTED';
const NOT_MEASURED = 'NODE_NOT_MEASURED';
/** Whether a reason says that the node is a stranger's that nothing is placed on. */
export const isDistrust = (reason: Reason | null) =>
  reason?.code === NOT_LISTED || reason?.code === NOT_MEASURED;

const refuse = (code: string, message: string): Trust => ({
  against: { code, message },
  room: { cpu: 0, memoryMib: 0, diskGib: 0 },
  words: message,
});

/** What counts of what a node announces. */
export function countedRoom(claimed: Resources, { room }: Trust): Resources {
  if (room === null) return claimed;
  return {
    cpu: Math.min(claimed.cpu, room.cpu),
    memoryMib: Math.min(claimed.memoryMib, room.memoryMib),
    diskGib: Math.min(claimed.diskGib, room.diskGib),
  };
}
