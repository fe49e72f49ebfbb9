import { Failures, type Logger, Slots } from '@skerry/kit';
import { LIMITS } from '@skerry/protocol';

import { chooseNodes, keyOf, noteAnswers, ownerOf } from './choice.ts';
import { type Clock, followPlan } from './follow-plan.ts';
import { DONE_MAX, type HourStore, type SignedReport, WAITING_MAX } from './hour-store.ts';
import { distinctNodes, type MeasuredNode } from './node-list.ts';
import { type HourWindow, planHour, type Visit, windowAt } from './plan.ts';
import type { PublishedRecord } from './probe/measure.ts';
import { isRefusal } from './report.ts';

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

/** The part of the places that nodes may take which only announced themselves. */
const STRANGERS_PART = 0.75;
/** Of these, what the nodes of one owner may take. */
const OWNER_PART = 0.25;
const isStranger = ({ node }: Visit) => node.address !== undefined && !node.isListed;

type Known = Awaited<ReturnType<HourStore['listHours']>>;

/**
 * How far an hour is. One that comes again, as the clock was set back, and was not measured while scores of it may be published, or of
 * which nothing is remembered any more, counts as done: what would be dated in it now, nobody who computed them has heard of.
 */
function stateOf(hours: Known, { startMs, endMs }: HourWindow) {
  const state = hours.get(startMs);
  if (state !== undefined) return state;
  const done = [...hours].flatMap(([hour, one]) => (one === 'done' ? [hour] : []));
  const isForgotten = done.length >= DONE_MAX && startMs < done[0]!;
  const next = hours.get(endMs);
  return isForgotten || (next !== undefined && next !== 'measuring') ? 'done' : undefined;
}

/** The monitor's work, hour after hour. Nothing that it needs is in memory alone. */
export class Hours {
  readonly #options: HoursOptions;
  /** Of sending in a row: a core node may be away for a night. */
  readonly #failures: Failures;
  #nodes: readonly MeasuredNode[] = [];
  #delivery: Promise<void> = Promise.resolve();

  constructor(options: HoursOptions) {
    this.#options = options;
    const what = 'the core node did not accept the hour; retrying';
    this.#failures = new Failures({ log: options.log, what });
  }

  /** Measures what is left of the present hour, publishes it, and waits for the next one. */
  async runHour(): Promise<void> {
    const { clock, hourMs, store, signal } = this.#options;
    const window = windowAt(clock.now(), hourMs);
    await this.#signPast(window.startMs);
    await this.deliver();
    await this.#dropAhead();
    const hours = await store.listHours();
    const state = stateOf(hours, window);
    // Scores are of all that was measured before: with an hour that is still on its way nobody could compute the same again.
    const isComplete = ![...hours].some(([startMs, one]) => startMs < window.startMs && one === 'signed');
    if (state === undefined && isComplete) await this.#publishScores(window.startMs);
    if (state === undefined || state === 'measuring') {
      await this.#measureHour(window);
      if (signal.aborted) return;
      // Set back by more than a core node takes: the next turn drops this hour, and begins with the present one.
      if (window.startMs - clock.now() > LIMITS.futureSeconds * 1000) return;
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
          this.#failures.clear();
          notes.push(report.itemHash);
          log.info({ item_hash: report.itemHash, hour: new Date(hour).toISOString() }, 'published the hour');
        } catch (error) {
          if (!isRefusal(error)) {
            // What was cut off by the end of this process is sent by the next one.
            if (!signal.aborted) this.#failures.note(error);
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
    const { clock, concurrency, seed, store, signal, log } = this.#options;
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
    const idle = new AbortController();
    const alarm = clock
      .waitUntil(window.endMs, AbortSignal.any([signal, idle.signal]))
      .then((isEnd) => isEnd && over.abort());
    const left = await this.#visitAll(visits, window, AbortSignal.any([signal, over.signal]));
    idle.abort();
    await alarm;
    if (left.length === 0 || signal.aborted) return;
    // Of strangers that is no fault of this monitor's.
    const listed = left.filter((one) => !isStranger(one)).length;
    log[listed > 0 ? 'warn' : 'info'](
      { nodes: left.length, listed },
      'the hour ended before these nodes were measured: it was begun late, or they are too many or too slow for SKERRY_MONITOR_CONCURRENCY',
    );
  }

  /**
   * Strangers keep no listed node waiting, however long they let visits last: a part of the places is free of them. Nor do those of one owner
   * keep those of others waiting.
   * @param ended ends with the hour
   * @returns the visits that were not made, or not to their end
   */
  async #visitAll(
    visits: readonly Visit[],
    { startMs }: HourWindow,
    ended: AbortSignal,
  ): Promise<readonly Visit[]> {
    const { clock, concurrency, store, measure, log } = this.#options;
    const places = new Slots(concurrency);
    const left = new Set(visits);
    const visit = async (one: Visit) => {
      if (ended.aborted) return;
      const { kind, nodeId } = one.node;
      try {
        const record = await measure(one.node, ended);
        // What was cut off is no measurement: after a stop it is made again, at the hour's end it is left out.
        if (ended.aborted) return;
        await store.append(startMs, { kind, record });
      } catch (error) {
        log.error({ err: error, node_id: nodeId }, 'a measurement was lost');
      }
      left.delete(one);
    };
    const partOf = (part: number) => Math.max(1, Math.floor(part * concurrency));
    const strangersPlaces = new Slots(partOf(STRANGERS_PART));
    const follow = (some: readonly Visit[], atOnce: number, make: (one: Visit) => Promise<void>) =>
      followPlan(some, { clock, concurrency: atOnce, signal: ended, visit: make });
    const inPlace = (one: Visit) => places.run(() => visit(one));
    const owners = Map.groupBy(visits.filter(isStranger), ({ node }) => ownerOf(node)).values();
    const listed = visits.filter((one) => !isStranger(one));
    await Promise.all([
      follow(listed, concurrency, inPlace),
      ...Array.from(owners, (own) =>
        follow(own, partOf(OWNER_PART), (one) => strangersPlaces.run(() => inPlace(one))),
      ),
    ]);
    return [...left];
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
    // A clock that was set back over the hour's beginning dates nothing into the hour before.
    const dateMs = Math.max(startMs, Math.min(clock.now(), startMs + hourMs - 1));
    await store.sign(startMs, sign(entries, dateMs / 1000));
  }

  /** What was measured by a clock that was far ahead is of no hour: by the time that it names, nodes are measured then. */
  async #dropAhead(): Promise<void> {
    const { clock, store, log } = this.#options;
    const latestMs = clock.now() + LIMITS.futureSeconds * 1000;
    for (const [startMs, state] of await store.listHours())
      if (state === 'measuring' && startMs > latestMs) {
        await store.drop(startMs);
        log.warn(
          { hour: new Date(startMs).toISOString() },
          'the clock was set back: an hour ahead is dropped',
        );
      }
  }

  /** Hours that an earlier process measured and did not publish. */
  async #signPast(beforeMs: number): Promise<void> {
    const { store } = this.#options;
    for (const [startMs, state] of await store.listHours())
      if (state === 'measuring' && startMs < beforeMs) await this.#sign(startMs);
  }
}
