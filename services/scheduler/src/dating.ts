import { type CoreClient, call } from '@skerry/client';
import { fieldsOf } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';

export type Dating = (send: (decidedAtMs: number) => Promise<void>) => Promise<void>;

/**
 * Dates decisions, each later than all that were taken before it, also where the clock stands still or is set back. A date that
 * nobody took is forgotten: where the clock was ahead, it binds nothing that is decided after the clock was set right.
 * @param findLatestMs of what another process had taken: nobody heeds a decision that is dated before another one. Asked until it
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
 * When the latest decision was taken of those that a core node has and heeds, Unix milliseconds; 0 where it has none. It heeds the latest
 * of all schedulers that it trusts: who takes over from one whose clock was ahead goes on from that one's dates.
 * @param type of the POST that tells it
 */
export async function readLatestMs(core: CoreClient, type: string, signal: AbortSignal): Promise<number> {
  const { trust } = await core.getInfo();
  const addresses = trust.schedulers.value.join(',');
  if (addresses === '') return 0;
  const query = { types: type, addresses, pagination: NEWEST };
  const { posts } = await call(core.url, NETWORK_LISTS_API.listNetworkPosts, { query }, { signal });
  const dates = posts.map(({ content }) => fieldsOf(content).decided_at_ms);
  return Math.max(0, ...dates.filter((date) => Number.isSafeInteger(date)).map(Number));
}
