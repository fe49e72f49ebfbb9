import type { Logger } from '@skerry/kit';

/** A full read of the core node. */
export interface Reading {
  /** Ends when everything has to be read again: the node lacked something, and has it now. */
  readonly signal: AbortSignal;
  /** What was read is what the scheduler goes by from now on. */
  done(): void;
}

export interface CoreStepOptions {
  /** Why nothing is to be decided by what the core node says now; null where it may be. */
  readonly check: () => Promise<string | null>;
  /** Told when `lag` or `isLost` has changed. */
  readonly onChange: () => void;
  readonly log: Logger;
}

const UNREAD = 'the core node has not been read yet';

/** Whether the scheduler may decide by what it has read: only if the core node had what its peers have when the read began, and since then. */
export class CoreStep {
  readonly #options: CoreStepOptions;
  #lag: string | null = UNREAD;
  #isLost = false;
  #reading: { readonly stop: AbortController; isBehind: boolean } | undefined;

  constructor(options: CoreStepOptions) {
    this.#options = options;
  }

  /** Why nothing is to be decided, in a sentence; null where it may be. */
  get lag(): string | null {
    return this.#lag;
  }

  /** The connection was lost, and nobody has asked since: another node may be there, or one that was restored. */
  get isLost(): boolean {
    return this.#isLost;
  }

  lost(): void {
    this.#isLost = true;
  }

  /** Before everything is read. Rejects where the node does not answer. */
  async begin(): Promise<Reading> {
    const lag = await this.#options.check();
    const reading = { stop: new AbortController(), isBehind: false };
    this.#reading = reading;
    this.#note(lag);
    return {
      signal: reading.stop.signal,
      done: () => {
        if (!reading.isBehind) this.#catchUp();
      },
    };
  }

  /** Asks again. Rejects where the node does not answer. */
  async look(): Promise<void> {
    this.#note(await this.#options.check());
  }

  #note(lag: string | null): void {
    const { onChange, log } = this.#options;
    const [before, wasLost] = [this.#lag, this.#isLost];
    this.#isLost = false;
    if (lag !== null) {
      if (before === null || before === UNREAD) log.info({ why: lag }, 'nothing is decided for now');
      this.#lag = lag;
      if (this.#reading) this.#reading.isBehind = true;
    } else if (this.#reading?.isBehind) this.#reading.stop.abort();
    if (wasLost || this.#lag !== before) onChange();
  }

  #catchUp(): void {
    const { onChange, log } = this.#options;
    if (this.#lag === null) return;
    if (this.#lag !== UNREAD) log.info('the core node has what its peers have: deciding again');
    this.#lag = null;
    onChange();
  }
}
