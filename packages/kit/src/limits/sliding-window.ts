const WINDOW_MS = 60_000;
/** Requests within so long are kept as one run: a client is some sixty numbers at most, however often it asks. */
const RUN_MS = 1_000;

/** The requests of one client that were taken in the last minute, in runs, the oldest first. */
export interface Recent {
  /** When the last request of each run came; the run counts until that is a minute ago. */
  lastMs: number[];
  counts: number[];
  /** When the newest run began. */
  newestMs: number;
  total: number;
}

export interface Taken {
  readonly isAllowed: boolean;
  /** Requests that would still be taken now. */
  readonly remaining: number;
  /** Until the next request is taken, where this one was not; at least one. */
  readonly retryAfterSeconds: number;
  /** Until nothing counts any more. */
  readonly resetSeconds: number;
}

const NONE: number[] = [];
export const nothingRecent = (): Recent => ({ lastMs: NONE, counts: NONE, newestMs: 0, total: 0 });

function forgetOld(recent: Recent, nowMs: number): void {
  const { lastMs, counts } = recent;
  let gone = 0;
  while (gone < lastMs.length && lastMs[gone]! + WINDOW_MS <= nowMs) recent.total -= counts[gone++]!;
  if (gone === 0) return;
  lastMs.splice(0, gone);
  counts.splice(0, gone);
}

function note(recent: Recent, nowMs: number): void {
  const { lastMs, counts } = recent;
  const newest = counts.length - 1;
  recent.total++;
  if (newest >= 0 && nowMs - recent.newestMs < RUN_MS) {
    counts[newest]!++;
    lastMs[newest] = nowMs;
    return;
  }
  recent.newestMs = nowMs;
  if (newest < 0) {
    // As small as can be: many clients come once. An empty list that grows takes room for seventeen.
    recent.lastMs = [nowMs];
    recent.counts = [1];
  } else {
    lastMs.push(nowMs);
    counts.push(1);
  }
}

/**
 * Takes one request where fewer than `perMinute` were taken in the last sixty seconds, so that no sixty seconds ever have
 * more. A run leaves as a whole, with its last request: at most a second later than each by itself would.
 * @param recent what was taken of this client's; changed
 */
export function takeOne(recent: Recent, perMinute: number, nowMs: number): Taken {
  forgetOld(recent, nowMs);
  const isAllowed = recent.total < perMinute;
  if (isAllowed) note(recent, nowMs);
  const secondsUntilGone = (lastMs: number) => Math.max(1, Math.ceil((lastMs + WINDOW_MS - nowMs) / 1000));
  return {
    isAllowed,
    // What is allowed may have become less.
    remaining: Math.max(0, perMinute - recent.total),
    retryAfterSeconds: secondsUntilGone(recent.lastMs[0]!),
    resetSeconds: secondsUntilGone(recent.lastMs.at(-1)!),
  };
}
