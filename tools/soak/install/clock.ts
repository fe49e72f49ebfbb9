/** What a soak does, in steps, each with its seconds. */
export class Clock {
  readonly #steps: { readonly what: string; readonly seconds: number }[] = [];
  readonly #startMs = performance.now();

  #say(line: string): void {
    console.log(`[${((performance.now() - this.#startMs) / 1000).toFixed(0).padStart(5)} s] ${line}`);
  }

  async step<T>(what: string, body: () => Promise<T>): Promise<T> {
    this.#say(`${what} ...`);
    const startMs = performance.now();
    const result = await body();
    const seconds = (performance.now() - startMs) / 1000;
    this.#steps.push({ what, seconds });
    this.#say(`${what}: ${seconds.toFixed(1)} s`);
    return result;
  }

  /** Seconds that the steps took whose names begin so. */
  sum(prefix: string): number {
    return this.#steps
      .filter(({ what }) => what.startsWith(prefix))
      .reduce((sum, { seconds }) => sum + seconds, 0);
  }

  table(): string {
    const width = Math.max(...this.#steps.map(({ what }) => what.length));
    return this.#steps
      .map(({ what, seconds }) => `${what.padEnd(width)}  ${seconds.toFixed(1).padStart(7)} s`)
      .join('\n');
  }
}
