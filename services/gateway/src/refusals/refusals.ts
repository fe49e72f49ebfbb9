import type { Logger } from '@skerry/kit';
import type { Refusal } from '../dataplane/port.ts';
import { type Account, type Reasons, Tally } from './tally.ts';

/** How much is looked back on: between one and two of these. */
const WINDOW_MS = 5 * 60_000;
/** After the first refusal in a while, so long is waited for what belongs to it. */
const SETTLE_MS = 1_000;
/** From one telling in the log to the next. */
const TELL_EVERY_MS = 60_000;
/** Networks that one telling names, a line each; one line more is of all others. */
const LINES_MAX = 10;

export interface RefusedLately {
  /** Unix seconds. */
  readonly since: number;
  readonly accounts: readonly Account[];
  /** Of all other networks. */
  readonly others: Omit<Account, 'network'>;
}

const asFields = (reasons: Reasons) =>
  Object.fromEntries([...reasons].sort(([, one], [, other]) => other - one));

/**
 * Who was refused lately, and why: a few lines of the log for however many refusals, and the heaviest networks for whoever asks. Nothing
 * here is a stranger's to write: a network is made of an address, and reasons are of closed sets.
 */
export class Refusals implements Disposable {
  readonly #log: Logger;
  #untold = new Tally();
  #toldMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #before = new Tally();
  #now = new Tally();
  #startedMs = performance.now();
  #beforeStartedMs = this.#startedMs;

  constructor(log: Logger) {
    this.#log = log;
  }

  note(refusal: Refusal): void {
    this.#turn();
    this.#now.add(refusal);
    this.#untold.add(refusal);
    if (this.#timer !== undefined) return;
    const waitMs = Math.max(SETTLE_MS, this.#toldMs + TELL_EVERY_MS - performance.now());
    this.#timer = setTimeout(() => this.#tell(), waitMs).unref();
  }

  /** What is older than two windows is forgotten. The clock is one that nobody sets. */
  #turn(): void {
    const nowMs = performance.now();
    const ageMs = nowMs - this.#startedMs;
    if (ageMs < WINDOW_MS) return;
    this.#before = ageMs < 2 * WINDOW_MS ? this.#now : new Tally();
    this.#beforeStartedMs = ageMs < 2 * WINDOW_MS ? this.#startedMs : nowMs;
    this.#now = new Tally();
    this.#startedMs = nowMs;
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#toldMs = performance.now();
    const { accounts, others } = this.#untold.heaviest(LINES_MAX);
    this.#untold = new Tally();
    for (const { network, count, reasons } of accounts)
      this.#log.info({ network, refused: count, reasons: asFields(reasons) }, 'clients were refused');
    if (others.count > 0)
      this.#log.info(
        { refused: others.count, reasons: asFields(others.reasons) },
        'clients of other networks were refused',
      );
  }

  /** The networks with the most refusals of the last five to ten minutes. */
  lately(most: number): RefusedLately {
    this.#turn();
    const both = new Tally();
    both.addAll(this.#before);
    both.addAll(this.#now);
    const ageMs = performance.now() - this.#beforeStartedMs;
    return { since: Math.floor((Date.now() - ageMs) / 1000), ...both.heaviest(most) };
  }

  /** Tells the rest. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    if (!this.#untold.isEmpty) this.#tell();
  }
}
