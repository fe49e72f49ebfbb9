import { type CoreClient, call } from '@skerry/client';
import { fieldsOf } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';

/**
 * Dates decisions, each later than all that were taken before it, also where the clock stands still or is set back. A date that
 * nobody took is forgotten: where the clock was ahead, it binds nothing that is decided after the clock was set right.
 */
export class Dating {
  readonly #now: () => number;
  readonly #findLatestMs: () => Promise<number>;
  #takenMs = 0;
  /** How often this scheduler came to speak, and up to which time of these it knows what others had dated. */
  #turn = 1;
  #knownTurn = 0;

  /**
   * @param now Unix milliseconds
   * @param findLatestMs of what another process had taken: nobody heeds a decision that is dated before another one. Asked until it
   *   answers; no decision is sent before
   */
  constructor(now: () => number, findLatestMs: () => Promise<number>) {
    this.#now = now;
    this.#findLatestMs = findLatestMs;
  }

  /** This scheduler speaks again: others may have dated decisions meanwhile. */
  takeOver(): void {
    this.#turn++;
  }

  /**
   * @param send rejects where the decision was not taken
   * @param signal of whoever decides: once it has ended nothing is sent, and its reason is thrown. A decision that was overtaken
   *   while others' dates were asked for would be dated after what overtook it
   */
  async date(send: (decidedAtMs: number) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (this.#knownTurn < this.#turn) {
      const turn = this.#turn;
      const foundMs = await this.#findLatestMs();
      this.#takenMs = Math.max(this.#takenMs, foundMs);
      this.#knownTurn = Math.max(this.#knownTurn, turn);
    }
    signal.throwIfAborted();
    const decidedAtMs = Math.max(this.#now(), this.#takenMs + 1);
    await send(decidedAtMs);
    this.#takenMs = Math.max(this.#takenMs, decidedAtMs);
  }
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
