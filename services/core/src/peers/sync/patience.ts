/** How long a peer is waited for that brings nothing. */
export const PATIENCE_MS = 600_000;
/**
 * What each message gives back that it brings and that this node did not have: whoever brings fewer than ten a second runs out of
 * time. A slow line brings ten of a few hundred bytes; a trickle is no copy that has an end.
 */
export const MESSAGE_MS = 100;
/** What messages give back in all: nobody can tell an honest copy that takes longer from messages that somebody makes up for that. */
export const COPY_MAX_MS = 3 * 86_400_000;
/**
 * Once a peer was in step, each later session that comes to its end gives back such a part of what passed since the one before: a peer that
 * lies, and comes to an end in between, holds the node for a tenth of all time at most.
 */
const EARNED_SHARE = 0.1;
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
  /** When a session last came to its end. */
  #endedMs: number | undefined;

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
    this.#endedMs = undefined;
    this.#earn(Number.POSITIVE_INFINITY);
  }

  /** A session came to its end: nothing is waited for until the next one. The first gives all of the time back. */
  end(): void {
    this.pause();
    const nowMs = this.#uptime();
    this.#setSpent(Math.min(this.#spent, PATIENCE_MS));
    this.#earn(
      this.#endedMs === undefined ? Number.POSITIVE_INFINITY : (nowMs - this.#endedMs) * EARNED_SHARE,
    );
    this.#endedMs = nowMs;
  }

  #earn(ms: number): void {
    this.#setSpent(Math.max(0, this.#spent - ms));
    this.#givenMs = Math.max(0, this.#givenMs - ms);
    if (this.#spentMs === 0) this.#isTold = false;
  }

  /** Whether it is over and nobody was told yet. */
  tellOver(): boolean {
    if (this.#isTold || !this.isOver) return false;
    this.#isTold = true;
    return true;
  }
}
