import { backoffMs } from '@skerry/kit';

/** From one try of a CID to the next: longer each time, and half as long as from pass to pass (missed.ts), so that none is passed over. */
const REST_BASE_MS = 150_000;
const REST_MAX_MS = 2 * 3_600_000;
/** Most of them are hours apart: more than a day passes until then, and three days where nothing else comes. */
const TRIES_MAX = 24;
/** CIDs that are remembered. */
const KNOWN_MAX = 100_000;

export interface VainTriesOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
}

/**
 * How often each CID for which messages were rejected was tried in vain: a stranger's costs much at each try, so that it is given up after
 * some. In memory: a process that begins tries them again.
 */
export class VainTries {
  readonly #options: VainTriesOptions;
  /** The oldest first. */
  readonly #known = new Map<string, { readonly tries: number; readonly nextMs: number }>();

  constructor(options: VainTriesOptions) {
    this.#options = options;
  }

  /** Whether it may be tried now. */
  mayTry(cid: string): boolean {
    const { tries, nextMs } = this.#known.get(cid) ?? { tries: 0, nextMs: 0 };
    const waitMs = nextMs - this.#options.now();
    // Longer than any rest: the clock has been set back since.
    return tries < TRIES_MAX && (waitMs <= 0 || waitMs > REST_MAX_MS);
  }

  /** A try was in vain. @param isFinal whether all others would be */
  note(cid: string, isFinal: boolean): void {
    const { now, random } = this.#options;
    const tries = isFinal ? TRIES_MAX : (this.#known.get(cid)?.tries ?? 0) + 1;
    const nextMs = now() + backoffMs(tries, REST_BASE_MS, REST_MAX_MS, random());
    this.#known.set(cid, { tries, nextMs });
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
  }

  /** All of it is here. */
  end(cid: string): void {
    this.#known.delete(cid);
  }
}
