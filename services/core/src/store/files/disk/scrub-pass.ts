import { createParser } from '@skerry/protocol';
import { type Static, Type } from '@skerry/protocol/type';

/** Where a pass through all blobs is. */
export interface Pass {
  /** The last one that was read, in the order of hashes; empty before the first. */
  readonly after: string;
  /** When the pass began, milliseconds since 1970. */
  readonly sinceMs: number;
}

/** Hashes are spread evenly: so many digits of one say how far in a pass it comes, in parts of this. */
const DIGITS = 12;
const WHOLE = 16 ** DIGITS;

const shareOf = (hash: string) =>
  Number.parseInt(hash.slice(0, DIGITS).padEnd(DIGITS, '0') || '0', 16) / WHOLE;

/** How much of the pass is done, from 0 to 1. Pure. */
export const doneShare = ({ after }: Pick<Pass, 'after'>): number => shareOf(after);

/** A clock that was set back: what is done stays done, as if it had begun when that takes this long. Pure. */
export function heedClock(pass: Pass, nowMs: number, periodMs: number): Pass {
  return pass.sinceMs <= nowMs ? pass : { ...pass, sinceMs: Math.round(nowMs - doneShare(pass) * periodMs) };
}

/** Whether a blob's turn in the pass has come: all are spread over the period. Pure. */
export const isDue = (hash: string, { sinceMs }: Pick<Pass, 'sinceMs'>, nowMs: number, periodMs: number) =>
  shareOf(hash) * periodMs <= nowMs - sinceMs;

/** The pass that follows one which came to its end; undefined before its time is over. Pure. */
export function nextPass(
  { sinceMs }: Pick<Pass, 'sinceMs'>,
  nowMs: number,
  periodMs: number,
): Pass | undefined {
  if (nowMs - sinceMs < periodMs) return undefined;
  return { after: '', sinceMs: nowMs };
}

const Kept = Type.Object({
  after: Type.String({ pattern: '^([0-9a-f]{64})?$' }),
  since_ms: Type.Integer(),
});
const parseKept: (value: unknown) => Static<typeof Kept> = createParser(Kept, 'the pass', 'INVALID_JSON');

/** What is kept of it between two processes; undefined where the text is no pass. Pure. */
export function parsePass(text: string): Pass | undefined {
  try {
    const { after, since_ms: sinceMs } = parseKept(JSON.parse(text));
    return { after, sinceMs };
  } catch {
    return undefined;
  }
}

export const formatPass = ({ after, sinceMs }: Pass): string =>
  `${JSON.stringify({ after, since_ms: Math.round(sinceMs) })}\n`;
