import { Failures, type Logger } from '@skerry/kit';

/** Changes within this time are written together. */
const SAVE_DELAY_MS = 500;

/** Writes after changes: soon, not for each one, and never twice at the same time. What could not be written is tried again. */
export class Saver implements AsyncDisposable {
  readonly #write: () => Promise<void>;
  readonly #failures: Failures;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isEnding = false;

  constructor(write: () => Promise<void>, log: Logger) {
    this.#write = write;
    this.#failures = new Failures({ log, what: 'the table could not be stored and is kept in memory' });
  }

  /** There is something new to keep. */
  changed(): void {
    this.#flushIn(SAVE_DELAY_MS);
  }

  #flushIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#flush(), ms);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#store());
  }

  async #store(): Promise<void> {
    try {
      await this.#write();
      this.#failures.clear();
    } catch (error) {
      const restMs = this.#failures.note(error);
      // A disk that was full gets it once there is room, also where nothing changes any more.
      if (!this.#isEnding) this.#flushIn(restMs);
    }
  }

  /** Writes what is not written yet, and is done when that is done. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    if (this.#timer) this.#flush();
    await this.#writing;
  }
}
