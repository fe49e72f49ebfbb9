import type { Libp2p } from '@libp2p/interface';
import type { Logger } from '@skerry/kit';
import { CID } from 'multiformats/cid';
import { PEER_LIMITS } from './limits.ts';
import type { PinList } from './pins.ts';

const NEVER = Number.NEGATIVE_INFINITY;

export interface AnnouncerOptions {
  readonly libp2p: Pick<Libp2p, 'getPeers' | 'contentRouting'>;
  readonly pins: Pick<PinList, 'readNew'>;
  /** Whether the core node still has it; undefined where it does not say. */
  readonly isKept: (cid: CID) => Promise<boolean | undefined>;
  readonly everyMs: number;
  /** Milliseconds of a clock that never goes back, and is never set. */
  readonly now: () => number;
  readonly log: Logger;
}

/** Puts provider records of what the core node keeps into the DHT, and renews them for as long as it does. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  /** When each was announced last. */
  readonly #atMs = new Map<string, number>();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** One round: what is new, and what is due again. */
  async run(signal: AbortSignal): Promise<void> {
    const { libp2p, pins, everyMs, now } = this.#options;
    // Nobody would hear of it.
    if (libp2p.getPeers().length === 0) return;
    for (const cid of await pins.readNew(signal))
      if (this.#atMs.size < PEER_LIMITS.announced && !this.#atMs.has(cid)) this.#atMs.set(cid, NEVER);
    for (const [text, atMs] of this.#atMs) {
      if (signal.aborted) return;
      if (atMs + everyMs <= now()) await this.#announce(text, signal);
    }
  }

  async #announce(text: string, signal: AbortSignal): Promise<void> {
    const { libp2p, isKept, everyMs, now, log } = this.#options;
    const cid = CID.parse(text);
    const kept = await isKept(cid);
    // A message may be here before its file, and a core node may be away: the next round looks again.
    if (kept === undefined || (!kept && this.#atMs.get(text) === NEVER)) return;
    const limit = AbortSignal.timeout(PEER_LIMITS.announceMs);
    const options = { signal: AbortSignal.any([signal, limit]) };
    try {
      if (kept) {
        await libp2p.contentRouting.provide(cid, options);
        this.#atMs.set(text, now());
      } else {
        // The DHT renews by itself what it was once told.
        await libp2p.contentRouting.cancelReprovide(cid, options);
        this.#atMs.delete(text);
      }
    } catch (error) {
      // It is due at once, and no longer never announced: the DHT may have kept it before it failed.
      this.#atMs.set(text, now() - everyMs);
      log.debug({ err: error, cid: text }, 'a CID was not announced, or not withdrawn');
    }
  }
}
