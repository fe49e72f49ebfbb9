/** Server-sent events (WHATWG HTML) as they come in pieces: the data of each, in order. */
export class EventText {
  #rest = '';
  #data: string[] = [];

  /** The data of the events that this piece ends. */
  feed(piece: string): string[] {
    const done: string[] = [];
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop()!;
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '' && this.#data.length > 0) {
        done.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
    return done;
  }
}

/** The newest so many of a row that never ends. Each has a number that it keeps. */
export class Ring<T> {
  readonly #kept: T[] = [];
  readonly #size: number;
  #total = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** How many there were. */
  get total(): number {
    return this.#total;
  }

  /** The number of the oldest that is kept. */
  get first(): number {
    return Math.max(0, this.#total - this.#size);
  }

  push(one: T): void {
    this.#kept[this.#total % this.#size] = one;
    this.#total++;
  }

  at(number: number): T | undefined {
    return number >= this.first && number < this.#total ? this.#kept[number % this.#size] : undefined;
  }
}

/** How many there were in each of the last seconds. */
export class Rate {
  readonly #counts: number[];
  #second = 0;

  constructor(seconds: number) {
    this.#counts = new Array<number>(seconds).fill(0);
  }

  #moveTo(second: number): void {
    const steps = Math.min(second - this.#second, this.#counts.length);
    for (let step = 0; step < steps; step++) this.#counts[(second - step) % this.#counts.length] = 0;
    this.#second = Math.max(this.#second, second);
  }

  add(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    this.#moveTo(second);
    this.#counts[second % this.#counts.length]!++;
  }

  /** Oldest first; the second that still runs is left out. */
  series(nowMs: number): number[] {
    this.#moveTo(Math.floor(nowMs / 1_000));
    const length = this.#counts.length;
    return Array.from({ length: length - 1 }, (_, at) => this.#counts[(this.#second + 1 + at) % length]!);
  }
}
