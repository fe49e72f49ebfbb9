import type { Logger } from '@skerry/kit';
import { AppError, isClockFault } from '@skerry/protocol';
import { chooseNodes, keyOf, noteAnswers } from './choice.ts';
import { type Clock, followPlan } from './follow-plan.ts';
import { type HourStore, type SignedReport, WAITING_MAX } from './hour-store.ts';
import { distinctNodes, type MeasuredNode } from './node-list.ts';
import { type HourWindow, planHour, windowAt } from './plan.ts';
import type { PublishedRecord } from './probe/measure.ts';

export interface HoursOptions {
  readonly clock: Clock;
  readonly hourMs: number;
  readonly concurrency: number;
  readonly seed: string;
  readonly store: HourStore;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly listNodes: () => Promise<readonly MeasuredNode[]>;
  /** @param signal ends with the hour */
  readonly measure: (node: MeasuredNode, signal: AbortSignal) => Promise<PublishedRecord>;
  /** @param timeSeconds within the hour */
  readonly sign: (entries: Awaited<ReturnType<HourStore['read']>>, timeSeconds: number) => SignedReport[];
  readonly send: (report: SignedReport) => Promise<void>;
  /** Scores of what was measured before an hour, where that is this monitor's work. @param startMs of the hour */
  readonly publishScores?: (startMs: number) => Promise<void>;
}

const isRefusal = (error: unknown) =>
  error instanceof AppError &&
  ['invalid', 'refused', 'too_large'].includes(error.kind) &&
  !isClockFault(error);

/** The monitor's work, hour after hour. Nothing that it needs is in memory alone. */
export class Hours {
  readonly #options: HoursOptions;
  #nodes: readonly MeasuredNode[] = [];
  #delivery: Promise<void> = Promise.resolve();

  constructor(options: HoursOptions) {
    this.#options = options;
  }

  /** Measures what is left of the present hour, publishes it, and waits for the next one. */
  async runHour(): Promise<void> {
    const { clock, hourMs, store, signal } = this.#options;
    const window = windowAt(clock.now(), hourMs);
    await this.#signPast(window.startMs);
    await this.deliver();
    const hours = await store.listHours();
    const state = hours.get(window.startMs);
    // Scores are of all that was measured before: with an hour that is still on its way nobody could compute the same again.
    const isComplete = ![...hours].some(([startMs, one]) => startMs < window.startMs && one === 'signed');
    if (state === undefined && isComplete) await this.#publishScores(window.startMs);
    if (state === undefined || state === 'measuring') {
      await this.#measureHour(window);
      if (signal.aborted) return;
      await this.#sign(window.startMs);
      await this.deliver();
    }
    // A clock that was ahead, and was set right meanwhile, would be waited for until it is there again.
    await clock.waitUntil(Math.min(window.endMs, clock.now() + hourMs), signal);
  }

  /** Sends what is signed, oldest first, until the core node cannot be reached. One delivery at a time. */
  deliver(): Promise<void> {
    this.#delivery = this.#delivery.catch(() => {}).then(() => this.#deliverAll());
    return this.#delivery;
  }

  async #deliverAll(): Promise<void> {
    const { store, send, signal, log } = this.#options;
    const waiting = [...(await store.listHours())].flatMap(([hour, state]) =>
      state === 'signed' ? [hour] : [],
    );
    for (const hour of waiting.slice(0, -WAITING_MAX)) await store.finish(hour, 'dropped: too old');
    for (const hour of waiting.slice(-WAITING_MAX)) {
      const notes: string[] = [];
      for (const report of await store.readSigned(hour)) {
        try {
          await send(report);
          notes.push(report.itemHash);
          log.info({ item_hash: report.itemHash, hour: new Date(hour).toISOString() }, 'published the hour');
        } catch (error) {
          if (!isRefusal(error)) {
            // What was cut off by the end of this process is sent by the next one.
            if (!signal.aborted) log.warn({ err: error }, 'the core node did not accept the hour; retrying');
            return;
          }
          log.error({ err: error, item_hash: report.itemHash }, 'the core node refused the hour');
          notes.push(`refused: ${(error as Error).message}`);
        }
      }
      await store.finish(hour, notes.join('\n'));
    }
  }

  async #publishScores(startMs: number): Promise<void> {
    const { publishScores, signal, log } = this.#options;
    try {
      await publishScores?.(startMs);
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error }, 'scores could not be published; retrying in the next hour');
    }
  }

  async #measureHour(window: HourWindow): Promise<void> {
    const { clock, concurrency, seed, store, signal, measure, log } = this.#options;
    await this.#refreshNodes();
    const measured = new Set(
      (await store.read(window.startMs)).map(({ kind, record }) => keyOf(kind, record.node_id)),
    );
    const answered = await store.readAnswered();
    const chosen = chooseNodes(this.#nodes, { answered, seed, window, concurrency });
    const visits = planHour(chosen, seed, window).filter(
      ({ node }) => !measured.has(keyOf(node.kind, node.nodeId)),
    );
    log.info({ nodes: this.#nodes.length, chosen: chosen.length, left: visits.length }, 'starting an hour');
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const idle = new AbortController();
    const alarm = clock
      .waitUntil(window.endMs, AbortSignal.any([signal, idle.signal]))
      .then((isEnd) => isEnd && over.abort());
    await followPlan(visits, {
      clock,
      concurrency,
      signal: ended,
      visit: async ({ node }) => {
        try {
          const record = await measure(node, ended);
          // What was cut off is no measurement: after a stop it is made again, at the hour's end it is left out.
          if (!ended.aborted) await store.append(window.startMs, { kind: node.kind, record });
        } catch (error) {
          log.error({ err: error, node_id: node.nodeId }, 'a measurement was lost');
        }
      },
    });
    idle.abort();
    await alarm;
  }

  async #refreshNodes(): Promise<void> {
    try {
      this.#nodes = distinctNodes(await this.#options.listNodes());
    } catch (error) {
      // Without any list the hour is not begun; it is tried again soon.
      if (this.#nodes.length === 0) throw error;
      this.#options.log.warn({ err: error }, 'cannot read the node list; using the last one');
    }
  }

  /** Signs an hour that is over or complete, dated within it. */
  async #sign(startMs: number): Promise<void> {
    const { clock, hourMs, store, sign } = this.#options;
    const entries = await store.read(startMs);
    if (entries.length === 0) return;
    // Not before the hour is over: until then its plan follows from what was known when it began.
    await store.keepAnswered(noteAnswers(await store.readAnswered(), entries, startMs, hourMs));
    await store.sign(startMs, sign(entries, Math.min(clock.now(), startMs + hourMs - 1) / 1000));
  }

  /** Hours that an earlier process measured and did not publish. */
  async #signPast(beforeMs: number): Promise<void> {
    const { store } = this.#options;
    for (const [startMs, state] of await store.listHours())
      if (state === 'measuring' && startMs < beforeMs) await this.#sign(startMs);
  }
}
