import type { InstanceList } from '@skerry/client';
import { Failures, type Logger, pause, type Remark, Remarks } from '@skerry/kit';
import { AppError, type InstanceView, type NetworkEvent, parseItemHash } from '@skerry/protocol';
import { type AddressPolicy, type Instance, keepPlace, parseInstance } from '../table/instance.ts';
import { decideSync } from './decide.ts';
import type { Routing } from './routing.ts';

/** The part of a core node's API that the gateway reads; CoreClient is one. */
export interface InstanceSource {
  readAllInstances(): Promise<InstanceList>;
  events(options: {
    cursor?: string | undefined;
    signal: AbortSignal;
    onDisconnect: (error: unknown, retryMs: number) => void;
    onUnreadable: (kind: string, error: AppError) => void;
  }): AsyncIterable<NetworkEvent>;
}

export interface SyncReport {
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  readonly heldBack: number;
  readonly durationMs: number;
}

export interface SynchroniserOptions {
  readonly source: InstanceSource;
  readonly routing: Routing;
  readonly policy: AddressPolicy;
  readonly periodMs: number;
  readonly log: Logger;
}

/** After a full sync that failed, at most this long until the next. */
const FAILED_SYNC_RETRY_MS = 5_000;

/** A core node that refuses even the cursors that it gives shall not be asked in a tight loop. */
const REFUSED_CURSOR_PAUSE_MS = 1_000;

const reason = (error: unknown) => (error instanceof Error ? error.message : String(error));
const tellUnreadable = (instance: string | undefined, { message: why }: AppError, tell: Remark) =>
  tell({ instance, why }, 'the core node has an instance that cannot be read');

/**
 * Keeps the table true: told of each change by the core node's event stream, and reading everything once in a while, in
 * case that the stream has missed something. A source that fails or suddenly knows much less changes nothing.
 */
export class Synchroniser implements AsyncDisposable {
  readonly #options: SynchroniserOptions;
  readonly #stop = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  /** Hashes that the stream told of while a full sync is under way. */
  #told = new Set<string>();
  /** Resolves when every full sync so far is over: never two at a time. */
  #last: Promise<unknown> = Promise.resolve();
  /** Full syncs that have not begun, by whether a loss is accepted: one of each at most. */
  readonly #waiting = new Map<boolean, Promise<SyncReport>>();
  /** Ends the present connection to the stream, so that it is taken up at `routing.cursor`. */
  #reconnect = new AbortController();
  #isAway = false;
  readonly #refused: Failures;
  readonly #remarks: Remarks;
  readonly #warn: Remark = (fields, message) => this.#options.log.warn(fields, message);

  constructor(options: SynchroniserOptions) {
    this.#options = options;
    this.#remarks = new Remarks(options.log);
    this.#refused = new Failures({
      log: options.log,
      what: 'the event stream cannot be resumed; reading everything again',
      baseMs: REFUSED_CURSOR_PAUSE_MS,
    });
  }

  start(): void {
    this.#loops = Promise.all([this.#syncPeriodically(), this.#follow()]);
  }

  /**
   * Reads everything anew, after what is under way. Callers that want the same share one that has not begun, so that each gets
   * what was true after it asked. Throws what the source failed with.
   */
  sync(acceptLoss = false): Promise<SyncReport> {
    const waiting = this.#waiting.get(acceptLoss);
    if (waiting) return waiting;
    const next = this.#last.then(() => {
      this.#waiting.delete(acceptLoss);
      return this.#readAll(acceptLoss);
    });
    this.#waiting.set(acceptLoss, next);
    this.#last = next.catch(() => {});
    return next;
  }

  async #readAll(acceptLoss: boolean): Promise<SyncReport> {
    const { source, routing, log } = this.#options;
    const started = performance.now();
    this.#told = new Set();
    const { cursor, ...list } = await source.readAllInstances();
    if (this.#stop.signal.aborted) throw new AppError('SHUTTING_DOWN', 'the gateway is stopping');
    const { read, unreadable } = this.#parseAll(list);
    const decision = decideSync({
      known: new Map(Array.from(routing.table.instances(), (one) => [one.hash, one])),
      source: read,
      untouchable: new Set([...this.#told, ...unreadable]),
      acceptLoss,
    });
    for (const instance of decision.remove) routing.remove(instance);
    for (const instance of decision.put) routing.put(instance);
    const { added, changed, heldBack } = decision;
    const removed = decision.remove.length;
    if (heldBack > 0) {
      log.warn(
        { heldBack, known: routing.table.instanceCount },
        'the core node suddenly lacks many instances: keeping their routes; to accept the loss, POST /api/sync with accept_loss',
      );
    }
    // A stream that works would have told of these: take it up again where this reading began.
    const missed = this.#told.size === 0 && added + changed + removed + heldBack > 0;
    if (routing.cursor === undefined || missed) {
      routing.cursor = cursor;
      this.#reconnect.abort();
    }
    routing.synced();
    return { added, removed, changed, heldBack, durationMs: performance.now() - started };
  }

  #parseAll(list: Pick<InstanceList, 'instances' | 'unreadable'>) {
    const read = new Map<string, Instance>();
    const unreadable: string[] = [];
    const tell = this.#remarks.begin();
    for (const { instanceId, error } of list.unreadable) {
      tellUnreadable(instanceId, error, tell);
      if (instanceId !== undefined) unreadable.push(instanceId);
    }
    for (const view of list.instances) {
      const instance = this.#parse(view, tell);
      if (instance) read.set(instance.hash, instance);
      else unreadable.push(view.instance_id);
    }
    return { read, unreadable };
  }

  #parse(view: InstanceView, tell: Remark): Instance | undefined {
    try {
      const instance = parseInstance(view, this.#options.policy);
      if (instance.ipv6 === null && view.ipv6 !== '')
        tell({ instance: instance.hash, ipv6: view.ipv6 }, 'this address is not allowed');
      return instance;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      tellUnreadable(view.instance_id, error, tell);
      return undefined;
    }
  }

  async #syncPeriodically(): Promise<void> {
    const { periodMs, log } = this.#options;
    const { signal } = this.#stop;
    let waitMs = 0;
    while (await pause(waitMs, signal)) {
      waitMs = periodMs;
      try {
        await this.sync();
        if (this.#isAway) log.info('the core node answers again');
        this.#isAway = false;
      } catch (error) {
        if (signal.aborted) return;
        waitMs = Math.min(periodMs, FAILED_SYNC_RETRY_MS);
        if (!this.#isAway)
          log.warn({ why: reason(error) }, 'a full sync failed; keeping the last good table');
        this.#isAway = true;
      }
    }
  }

  /** Follows the event stream from `routing.cursor`; until that is known, from where the first full sync began. */
  async #follow(): Promise<void> {
    const { routing } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#reconnect = new AbortController();
      const signal = AbortSignal.any([this.#stop.signal, this.#reconnect.signal]);
      if (routing.cursor === undefined) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        continue;
      }
      try {
        await this.#followConnection(routing.cursor, signal);
      } catch (error) {
        if (signal.aborted) continue;
        routing.cursor = undefined;
        void this.sync().catch(() => {});
        await pause(this.#refused.note(error), this.#stop.signal);
      }
    }
  }

  async #followConnection(cursor: string, signal: AbortSignal): Promise<void> {
    const { source, routing, log } = this.#options;
    const onDisconnect = (error: unknown, retryMs: number) => {
      if (!this.#isAway) log.warn({ why: reason(error), retryMs }, 'lost the event stream; reconnecting');
      this.#isAway = true;
    };
    const onUnreadable = (kind: string, error: AppError) => {
      if (kind === 'instance') tellUnreadable(undefined, error, this.#warn);
    };
    for await (const event of source.events({ cursor, signal, onDisconnect, onUnreadable })) {
      // A connection that was given up may still have something in hand.
      if (signal.aborted) return;
      if (this.#isAway) log.info('the event stream is connected again');
      this.#isAway = false;
      this.#refused.clear();
      this.#apply(event);
      routing.cursor = event.cursor;
      routing.synced();
    }
  }

  #apply(event: NetworkEvent): void {
    if (event.kind !== 'instance' && event.kind !== 'instance_removed') return;
    // What a full sync read of it before is older, also where this cannot be read.
    this.#told.add(event.data.instance_id);
    if (event.kind === 'instance_removed') {
      this.#forget(event.data.instance_id);
      return;
    }
    const instance = this.#parse(event.data, this.#warn);
    const { routing } = this.#options;
    if (instance) routing.put(keepPlace(instance, routing.table.find(instance.hash)));
  }

  /** Its owner took the instance back: the name is free, and another with the same words may have it. */
  #forget(hash: string): void {
    const { routing } = this.#options;
    const instance = routing.table.find(parseItemHash(hash));
    if (instance) routing.remove(instance);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#loops;
  }
}
