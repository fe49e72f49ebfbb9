import type { Logger } from './log.ts';

/** Says what is wrong with something, as a warning. */
export type Remark = (fields: object, message: string) => void;

/** What work that is done again and again finds wrong: said when it is new, and not by each round while it stays so. */
export class Remarks {
  readonly #log: Pick<Logger, 'warn'>;
  #before: ReadonlySet<string> = new Set();

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  /** A round begins: what the last one said is known. */
  begin(): Remark {
    const before = this.#before;
    const said = new Set<string>();
    this.#before = said;
    return (fields, message) => {
      const line = JSON.stringify([fields, message]);
      if (!before.has(line) && !said.has(line)) this.#log.warn(fields, message);
      said.add(line);
    };
  }
}
