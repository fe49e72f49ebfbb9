/** How long a peer is waited for that brings nothing. */
export const PATIENCE_MS = 600_000;
/**
 * What each message gives back that it brings and that this node did not have: whoever brings fewer than ten a second runs out of
 * time. A slow line brings ten of a few hundred bytes; a trickle is no copy that has an end.
 */
export const MESSAGE_MS = 100;
/** What messages give back in all: nobody can tell an honest copy that takes longer from messages that somebody makes up for that. */
export const COPY_MAX_MS = 3 * 86_400_000;
/** More is not counted: a peer that brings what it has after all, 6,000 messages of it, is waited for again. */
const SPENT_MAX_MS = 2 * PATIENCE_MS;

/**
 * How long one peer is still waited for. While this node lacks what a peer says to have, it is `syncing` and nobody decides
 * anything by what it says: a peer that lies must not make that last. Time counts while the peer answers, until a session
 * with it comes to its end.
 */
export class Patience {
  readonly #uptime: () => number;
  #spentMs = 0;
  /** What messages gave back, of COPY_MAX_MS. */
  #givenMs = 0;
  /** Since when time counts; undefined while it does not. */
  #sinceMs: number | undefined;
  #isTold = false;

  /** @param uptime milliseconds since whenever; never set */
  constructor(uptime: () => number) {
    this.#uptime = uptime;
  }

  get #spent(): number {
    const runMs = this.#sinceMs === undefined ? 0 : this.#uptime() - this.#sinceMs;
    return Math.min(SPENT_MAX_MS, this.#spentMs + runMs);
  }

  /** The peer is not waited for any more. */
  get isOver(): boolean {
    return this.#spent >= PATIENCE_MS;
  }

  /** Time counts from now on. */
  begin(): void {
    this.#sinceMs ??= this.#uptime();
  }

  /**
   * It is not the peer that is waited for, or it does not answer.
   * @param atMs when that began, by the same uptime
   */
  pause(atMs = this.#uptime()): void {
    if (this.#sinceMs === undefined) return;
    this.#spentMs = Math.min(SPENT_MAX_MS, this.#spentMs + Math.max(0, atMs - this.#sinceMs));
    this.#sinceMs = undefined;
  }

  /** @param messages that came of the peer, and that this node did not have */
  renew(messages: number): void {
    const spentMs = this.#spent;
    const givenMs = Math.min(spentMs, messages * MESSAGE_MS, COPY_MAX_MS - this.#givenMs);
    this.#givenMs += givenMs;
    this.#setSpent(spentMs - givenMs);
  }

  #setSpent(spentMs: number): void {
    this.#spentMs = spentMs;
    if (this.#sinceMs !== undefined) this.#sinceMs = this.#uptime();
  }

  /** Nothing was waited for until now. */
  restore(): void {
    this.#setSpent(0);
    this.#givenMs = 0;
    this.#isTold = false;
  }

  /** Whether it is over and nobody was told yet. */
  tellOver(): boolean {
    if (this.#isTold || !this.isOver) return false;
    this.#isTold = true;
    return true;
  }
}
