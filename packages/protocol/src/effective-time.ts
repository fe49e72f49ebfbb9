import { LIMITS } from './limits.ts';

/** A message's own date, and what is known of when it was there. */
export interface Dated {
  /** Unix seconds: its sender's word. */
  readonly time: number;
  /** When a core node first had it, milliseconds since 1970; nothing where it came in time. */
  readonly notedMs?: number | null | undefined;
}

/** A clock, in Unix seconds, for messages whose time was judged when they came: only what was signed is asked. */
export const ANY_TIME = Number.MAX_SAFE_INTEGER;

/** Whether a message is known to be there only so much after its own date that the date may have been chosen. */
export const isLate = ({ time, notedMs }: Dated): boolean =>
  notedMs != null && notedMs > (time + LIMITS.lateSeconds) * 1000;

/**
 * The time that counts wherever a date decides about what is somebody else's (docs/messages.md, "Dates"), Unix
 * seconds: the message's own, or when it was first there where it came late.
 */
export const effectiveTime = (dated: Dated): number => (isLate(dated) ? dated.notedMs! / 1000 : dated.time);
