import type { Logger } from '@skerry/kit';

/** Changes within this time are written together. */
const SAVE_DELAY_MS = 500;

/** Writes after changes: soon, not for each one, and never twice at the same time. */
export class Saver implements AsyncDisposable {
  readonly #write: () => Promise<void>;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(write: () => Promise<void>, log: Logger) {
    this.#write = write;
    this.#log = log;
  }

  /** There is something new to keep. */
  changed(): void {
    this.#timer ??= setTimeout(() => this.#flush(), SAVE_DELAY_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(this.#write).catch((error) => {
      this.#log.error({ err: error }, 'the table could not be stored and is kept in memory');
    });
  }

  /** Writes what is not written yet, and is done when that is done. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timer) this.#flush();
    await this.#writing;
  }
}
