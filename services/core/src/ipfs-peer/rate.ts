import { pause } from '@skerry/kit';

/** Bytes that may go out: a rate, and what it saves up in a second. What is sent is counted afterwards, as a debt. */
export class ByteRate {
  readonly #perMs: number;
  readonly #now: () => number;
  #left: number;
  #atMs: number;

  constructor(bytesPerSecond: number, now: () => number = () => performance.now()) {
    this.#perMs = bytesPerSecond / 1000;
    this.#now = now;
    this.#left = bytesPerSecond;
    this.#atMs = now();
  }

  /** How long until nothing is owed. */
  get owedMs(): number {
    this.#refill();
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left / this.#perMs);
  }

  /** Nothing is owed, and all of a second is saved up. */
  get isRested(): boolean {
    this.#refill();
    return this.#left >= this.#perMs * 1000;
  }

  note(bytes: number): void {
    this.#refill();
    this.#left -= bytes;
  }

  /** Resolves when nothing is owed. Rejects with the signal's reason. */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    for (let ms = this.owedMs; ms > 0; ms = this.owedMs) {
      await pause(ms, signal ?? NEVER);
      signal?.throwIfAborted();
    }
  }

  #refill(): void {
    const nowMs = this.#now();
    this.#left = Math.min(this.#perMs * 1000, this.#left + (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
  }
}

const NEVER = new AbortController().signal;

/** What goes out to all peers, and to each. */
export class PeerRates {
  readonly all: ByteRate;
  readonly #perPeer: number;
  readonly #peers = new Map<string, ByteRate>();

  constructor(settings: { readonly bytesPerSecond: number; readonly bytesPerSecondPerPeer: number }) {
    this.all = new ByteRate(settings.bytesPerSecond);
    this.#perPeer = settings.bytesPerSecondPerPeer;
  }

  of(peer: string): ByteRate {
    const rate = this.#peers.get(peer) ?? new ByteRate(this.#perPeer);
    this.#peers.set(peer, rate);
    return rate;
  }

  /** Forgets peers that owe nothing; one that comes back is no better off. */
  tidy(): void {
    for (const [peer, rate] of this.#peers) if (rate.isRested) this.#peers.delete(peer);
  }
}
