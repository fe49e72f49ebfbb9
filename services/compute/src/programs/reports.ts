import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, pause } from '@skerry/kit';
import { AppError, isClockFault, NETWORK_CHANNEL, NETWORK_POST, type ProgramRun } from '@skerry/protocol';

export interface RunReportsOptions {
  readonly core: Pick<CoreClient, 'postMessage'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Runs wait this long for others, so that many calls are one message. */
const GATHER_MS = 500;
const RUNS_PER_MESSAGE = 100;
/** What a core node that is away does not hear of is kept up to here; then the oldest go. */
const WAITING_MAX = 10_000;
const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 30_000;

/** Tells the network which programs were run, and how that ended. */
export class RunReports {
  readonly #options: RunReportsOptions;
  #waiting: ProgramRun[] = [];
  #wake = Promise.withResolvers<void>();
  #dropped = 0;
  /** Fewer after a refusal, until what was refused stands alone. */
  #perMessage = RUNS_PER_MESSAGE;

  constructor(options: RunReportsOptions) {
    this.#options = options;
  }

  add(run: ProgramRun): void {
    this.#waiting.push(run);
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift();
      this.#dropped++;
    }
    this.#wake.resolve();
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Sends until the signal ends. */
  async work(): Promise<void> {
    const { log, signal } = this.#options;
    const failures = new Failures({
      log,
      what: 'program runs could not be reported; keeping them',
      baseMs: RETRY_BASE_MS,
      maxMs: RETRY_MAX_MS,
    });
    signal.addEventListener('abort', () => this.#wake.resolve(), { once: true });
    for (let waitMs = GATHER_MS; ; ) {
      await this.#wake.promise;
      if (!(await pause(waitMs, signal))) return;
      this.#wake = Promise.withResolvers<void>();
      try {
        await this.#sendSome();
        failures.clear();
        waitMs = GATHER_MS;
      } catch (error) {
        if (signal.aborted) return;
        waitMs = failures.note(error);
      }
      if (this.#waiting.length > 0) this.#wake.resolve();
    }
  }

  /** Rejects where the same runs may be taken later. */
  async #sendSome(): Promise<void> {
    const runs = this.#waiting.slice(0, this.#perMessage);
    if (runs.length === 0) return;
    const { core, log } = this.#options;
    try {
      const content = { type: NETWORK_POST.programRuns, content: { runs } };
      await core.postMessage({ type: 'POST', channel: NETWORK_CHANNEL.programs, content });
    } catch (error) {
      if (!(error instanceof AppError && error.kind === 'invalid') || isClockFault(error)) throw error;
      // One of them is to blame: those of other programs are reported all the same.
      this.#perMessage = Math.ceil(runs.length / 2);
      if (runs.length > 1) return;
      log.warn({ err: error, program: runs[0]!.program_hash }, 'a program run could not be reported');
    }
    this.#perMessage = Math.min(RUNS_PER_MESSAGE, 2 * this.#perMessage);
    this.#waiting = this.#waiting.filter((run) => !runs.includes(run));
    if (this.#dropped > 0) log.warn({ runs: this.#dropped }, 'reports of runs were dropped');
    this.#dropped = 0;
  }
}
