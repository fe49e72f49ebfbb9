import { call } from '@skerry/client';
import { fieldsOf } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';

export type Dating = (send: (decidedAtMs: number) => Promise<void>) => Promise<void>;

/**
 * Dates decisions, each later than all that were taken before it, also where the clock stands still or is set back. A date that
 * nobody took is forgotten: where the clock was ahead, it binds nothing that is decided after the clock was set right.
 * @param findLatestMs of what an earlier process had taken: nobody heeds a decision that is dated before another one. Asked until it
 *   answers; no decision is sent before
 */
export function createDating(now: () => number, findLatestMs: () => Promise<number>): Dating {
  let takenMs: number | undefined;
  /** @param send rejects where the decision was not taken */
  return async (send) => {
    if (takenMs === undefined) {
      const foundMs = await findLatestMs();
      takenMs = Math.max(takenMs ?? 0, foundMs);
    }
    const decidedAtMs = Math.max(now(), takenMs + 1);
    await send(decidedAtMs);
    takenMs = Math.max(takenMs, decidedAtMs);
  };
}

/** The messages of a clock that was ahead may have come in another order than they are dated. */
const NEWEST = 20;

/**
 * When the latest decision that a core node has of a scheduler was taken, Unix milliseconds; 0 where it has none.
 * @param type of the POST that tells it
 */
export async function readLatestMs(
  coreUrl: string,
  address: string,
  type: string,
  signal: AbortSignal,
): Promise<number> {
  const query = { types: type, addresses: address, pagination: NEWEST };
  const { posts } = await call(coreUrl, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  const dates = posts.map(({ content }) => fieldsOf(content).decided_at_ms);
  return Math.max(0, ...dates.filter((date) => Number.isSafeInteger(date)).map(Number));
}
