/** Bytes that come in pieces, taken in pieces of another size. */
export class ByteQueue implements AsyncDisposable {
  readonly #source: AsyncIterator<Uint8Array>;
  #parts: Uint8Array[] = [];
  #sizeBytes = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** So many bytes, or undefined where fewer are left; those stay. */
  async take(count: number): Promise<Buffer | undefined> {
    while (this.#sizeBytes < count) {
      const { done, value } = await this.#source.next();
      if (done) return undefined;
      this.#parts.push(value);
      this.#sizeBytes += value.length;
    }
    const all = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    this.#parts = [all.subarray(count)];
    this.#sizeBytes = all.length - count;
    return Buffer.from(all.buffer, all.byteOffset, count);
  }

  /** Puts bytes back that were taken last. */
  giveBack(bytes: Uint8Array): void {
    this.#parts.unshift(bytes);
    this.#sizeBytes += bytes.length;
  }

  /** Ends the source. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.return?.();
  }
}
