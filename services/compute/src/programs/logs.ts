import { LogTail } from './sandbox/log-tail.ts';

/** Logs that are kept, beside those that are written to or followed now. */
const LOGS_MAX = 256;

/** A program, as far as its log needs it. `owner` is empty where it is part of the node. */
interface Logged {
  readonly hash: string;
  readonly owner: string;
}

export interface ProgramLog extends Logged {
  readonly tail: LogTail;
}

/** The logs of the programs that ran last, whatever becomes of their code meanwhile. */
export class ProgramLogs {
  /** In the order of last use. */
  readonly #logs = new Map<string, ProgramLog>();

  /** Where the program ran, and not too many others since. */
  find(hash: string): ProgramLog | undefined {
    return this.#logs.get(hash);
  }

  /** The log of a program that runs now. */
  use({ hash, owner }: Logged): LogTail {
    const log = this.#logs.get(hash) ?? { hash, owner, tail: new LogTail() };
    this.#logs.delete(hash);
    this.#dropOldest();
    this.#logs.set(hash, log);
    return log.tail;
  }

  /** The program was forgotten. */
  delete(hash: string): void {
    this.#logs.get(hash)?.tail.end();
    this.#logs.delete(hash);
  }

  #dropOldest(): void {
    for (const [hash, { tail }] of this.#logs) {
      if (this.#logs.size < LOGS_MAX) return;
      if (!tail.isInUse) this.#logs.delete(hash);
    }
  }
}
