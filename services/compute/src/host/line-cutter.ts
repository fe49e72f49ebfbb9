/** Cuts text into lines, however its bytes come. A line that does not end is cut at a limit. */
export class LineCutter {
  readonly #decoder = new TextDecoder();
  readonly #charsMax: number;
  #rest = '';

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** What came without its end yet. */
  get rest(): string {
    return this.#rest;
  }

  /** @returns the lines that end here */
  push(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > this.#charsMax) lines.push(...this.finish());
    return lines.map((line) => this.#cut(line));
  }

  /** What came without its end, where nothing follows it: one line or none. */
  finish(): string[] {
    const rest = this.#rest;
    this.#rest = '';
    return rest === '' ? [] : [this.#cut(rest)];
  }

  /** Without the returns at its end. They are counted: an expression begins anew at each of those that a guest prints elsewhere. */
  #cut(line: string): string {
    let end = line.length;
    while (line[end - 1] === '\r') end--;
    return line.slice(0, Math.min(end, this.#charsMax));
  }
}
