/**
 * Dates decisions, each later than all that were taken before it, also where the clock stands still. A date that nobody took
 * is forgotten: where the clock was ahead, it binds nothing that is decided after the clock was set right.
 */
export function createDating(now: () => number) {
  let takenMs = 0;
  /** @param send rejects where the decision was not taken */
  return async (send: (decidedAtMs: number) => Promise<void>): Promise<void> => {
    const decidedAtMs = Math.max(now(), takenMs + 1);
    await send(decidedAtMs);
    takenMs = Math.max(takenMs, decidedAtMs);
  };
}
