/** Bytes that arrive in pieces of any length, taken in pieces of known length. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** So many bytes, or fewer where there are no more. */
  async take(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      const part = await this.#next(missing);
      if (part === undefined) break;
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  /** So many bytes as they come, or fewer where there are no more. */
  async *pass(length: number): AsyncGenerator<Buffer> {
    for (let missing = length; missing > 0; ) {
      const part = await this.#next(missing);
      if (part === undefined) return;
      missing -= part.length;
      yield part;
    }
  }

  async #next(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return undefined;
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
