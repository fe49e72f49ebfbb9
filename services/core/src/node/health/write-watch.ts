import type { Write } from '@skerry/database';
import type { Logger } from '@skerry/kit';

/** What a server that answers says of itself where it refuses a write, by SQLSTATE: disk_full, out_of_memory, io_error. */
const REASONS: Readonly<Record<string, string>> = {
  '53100': 'the disk of the database is full',
  '53200': 'the database is out of memory',
  '58030': 'the disk of the database fails',
};

/** A small write may find room in between: only one so long after the last refusal shows that there is room again. */
const WELL_MS = 10_000;
/** Where nobody writes any more, nobody knows after so long. */
const KNOWN_MS = 600_000;

export interface WriteWatchOptions<Schema> {
  readonly write: Write<Schema>;
  readonly log: Logger;
  /** Milliseconds since whenever; never set. */
  readonly uptime?: () => number;
}

/**
 * Writes, and remembers what the database says where it refuses them. A server of its own may have a full disk, of which this node sees
 * nothing: it answers every question meanwhile.
 */
export class WriteWatch<Schema> {
  readonly #options: WriteWatchOptions<Schema>;
  #refusal: { readonly reason: string; readonly atMs: number } | undefined;

  constructor(options: WriteWatchOptions<Schema>) {
    this.#options = options;
  }

  /** Throws what the write throws. */
  readonly write: Write<Schema> = async (body) => {
    try {
      const written = await this.#options.write(body);
      this.#noteWritten();
      return written;
    } catch (error) {
      this.#noteFailure(error);
      throw error;
    }
  };

  /** Why the database refuses writes, in words; undefined where it takes them, or nobody knows. */
  get refusal(): string | undefined {
    if (this.#refusal && this.#sinceRefusal >= KNOWN_MS)
      this.#end(`no write for ${KNOWN_MS / 60_000} minutes: whether the database takes them is not known`);
    return this.#refusal?.reason;
  }

  get #now(): number {
    return (this.#options.uptime ?? (() => performance.now()))();
  }

  get #sinceRefusal(): number {
    return this.#refusal ? this.#now - this.#refusal.atMs : 0;
  }

  #noteWritten(): void {
    if (this.#refusal && this.#sinceRefusal >= WELL_MS) this.#end('the database takes writes again');
  }

  #noteFailure(error: unknown): void {
    const reason = REASONS[String((error as { code?: unknown } | undefined)?.code)];
    if (reason === undefined) return;
    if (this.#refusal?.reason !== reason)
      this.#options.log.error(
        { err: error },
        `${reason}: writes are refused until that is mended; reads continue`,
      );
    this.#refusal = { reason, atMs: this.#now };
  }

  #end(sentence: string): void {
    this.#refusal = undefined;
    this.#options.log.info(sentence);
  }
}
