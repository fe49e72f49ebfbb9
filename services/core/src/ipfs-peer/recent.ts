/** Blocks that were found a moment ago, within a bound of bytes: what came first goes first. */
export class RecentBlocks {
  readonly #limitBytes: number;
  readonly #blocks = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get(digest: string): Uint8Array | undefined {
    return this.#blocks.get(digest);
  }

  add(digest: string, block: Uint8Array): void {
    if (this.#blocks.has(digest) || block.length > this.#limitBytes) return;
    this.#blocks.set(digest, block);
    this.#bytes += block.length;
    for (const [oldest, bytes] of this.#blocks) {
      if (this.#bytes <= this.#limitBytes) return;
      this.#blocks.delete(oldest);
      this.#bytes -= bytes.length;
    }
  }
}
