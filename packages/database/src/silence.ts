/** After so long without a byte of an answer the server is asked what it does. */
const SILENT_MS = 3_000;
/** How long a commit may wait for a standby that is to have it too. Longer, and its sender is told to try again. */
const STANDBY_WAIT_MS = 10_000;
/** An answer may be under way while the server already says that it is done: it has to say so twice. */
const DENIALS = 2;

/** A connection as one look at it finds it. */
export interface State {
  /** Whether an answer is awaited. */
  readonly isBusy: boolean;
  readonly bytesRead: number;
}

/** What looks at a connection add up to. Times in milliseconds of a clock that only goes forward. */
export interface Sighting {
  readonly bytesRead: number;
  /** Since when an answer is awaited and nothing came; undefined where none is. */
  readonly silentSinceMs: number | undefined;
  readonly isSilent: boolean;
  /** How often in a row the server said that it knows nothing of the query. */
  readonly denials: number;
}

/** What the server says, over another connection, of one that is silent. */
export type Word = 'works' | 'waits for a standby' | 'knows nothing of it' | 'silent';

/** Pure. @param before the last sighting; undefined for a new connection */
export function sight(before: Sighting | undefined, { isBusy, bytesRead }: State, nowMs: number): Sighting {
  if (!isBusy) return { bytesRead, silentSinceMs: undefined, isSilent: false, denials: 0 };
  const isSame = before?.silentSinceMs !== undefined && before.bytesRead === bytesRead;
  const silentSinceMs = isSame ? before.silentSinceMs : nowMs;
  return {
    bytesRead,
    silentSinceMs,
    isSilent: nowMs - silentSinceMs! >= SILENT_MS,
    denials: isSame ? before.denials : 0,
  };
}

/** Whether a silent connection is given up, and why. Pure. @param now the last sighting, after the server was asked */
export function decideFate(now: Sighting, word: Word, nowMs: number): { sighting: Sighting; why?: string } {
  if (!now.isSilent) return { sighting: now };
  const silentMs = nowMs - now.silentSinceMs!;
  const seconds = Math.round(silentMs / 1_000);
  if (word === 'silent')
    return { sighting: now, why: `the database has not answered for ${seconds} s, and lets nobody in` };
  if (word === 'waits for a standby' && silentMs >= STANDBY_WAIT_MS)
    return { sighting: now, why: `no standby has confirmed a commit for ${seconds} s` };
  if (word !== 'knows nothing of it') return { sighting: { ...now, denials: 0 } };
  const sighting = { ...now, denials: now.denials + 1 };
  return sighting.denials < DENIALS
    ? { sighting }
    : { sighting, why: `the database knows nothing of a query that it was sent ${seconds} s ago` };
}
