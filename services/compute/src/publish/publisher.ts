import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, pause } from '@skerry/kit';
import {
  AppError,
  type InstanceStatusContent,
  isClockFault,
  LIMITS,
  NETWORK_CHANNEL,
  NETWORK_POST,
} from '@skerry/protocol';
import type { UndatedNode } from './announcement.ts';

export interface PublisherOptions {
  readonly core: Pick<CoreClient, 'postMessage'>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** The date of this node's last announcement that a core node took, milliseconds since 1970; 0 where there is none. */
  readonly lastAnnouncedMs: () => Promise<number>;
}

/** Told when a core node took a status. */
export type OnAccepted = (status: InstanceStatusContent) => Promise<void>;

const RETRY_BASE_MS = 200;
const RETRY_MAX_MS = 15_000;
/** As far as a clock may be ahead. */
const AHEAD_MAX_MS = LIMITS.futureSeconds * 1000;

/**
 * Tells the network about this node and its instances. The latest word about each thing waits here until a core node has
 * taken it, however long that is; an older word that was not sent yet is replaced.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #statuses = new Map<string, InstanceStatusContent>();
  #node: UndatedNode | undefined;
  /** Undefined until it is known: then it is asked for. */
  #lastAnnouncedMs: number | undefined;
  #lastStatusMs = 0;
  #wake = Promise.withResolvers<void>();

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  tellNode(content: UndatedNode): void {
    this.#node = content;
    this.#wake.resolve();
  }

  tellStatus(status: InstanceStatusContent): void {
    this.#statuses.set(status.instance_id, status);
    this.#wake.resolve();
  }

  /** How many things wait to be told. */
  get waiting(): number {
    return this.#statuses.size + (this.#node === undefined ? 0 : 1);
  }

  /** Sends until the signal ends. */
  async work(onAccepted: OnAccepted): Promise<void> {
    const { log, signal } = this.#options;
    const failures = new Failures({
      log,
      what: 'a message could not be published; it is kept and retried',
      baseMs: RETRY_BASE_MS,
      maxMs: RETRY_MAX_MS,
    });
    signal.addEventListener('abort', () => this.#wake.resolve(), { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers<void>();
      try {
        if (!(await this.#sendOne(onAccepted))) await this.#wake.promise;
        else if (failures.count > 0) log.info('the core node answers again');
        failures.clear();
      } catch (error) {
        if (signal.aborted) return;
        await pause(failures.note(error), signal);
      }
    }
  }

  /** @returns whether there was anything to send */
  async #sendOne(onAccepted: OnAccepted): Promise<boolean> {
    const node = this.#node;
    if (node !== undefined) {
      await this.#announce(node);
      if (this.#node === node) this.#node = undefined;
      return true;
    }
    const [status] = this.#statuses.values();
    if (status === undefined) return false;
    let isTold = false;
    try {
      await this.#post(NETWORK_POST.instanceStatus, {
        ...status,
        observed_at_ms: this.#dateOf(status),
      });
      isTold = true;
    } finally {
      this.#moveOn(status, isTold);
    }
    await onAccepted(status).catch((error) =>
      this.#options.log.warn({ err: error }, 'a record could not be written'),
    );
    return true;
  }

  /**
   * What is left to say of an instance waits at the end: one that changes faster than it can be told, or cannot be told at all, must not
   * keep the words about others waiting.
   */
  #moveOn(tried: InstanceStatusContent, isTold: boolean): void {
    const { instance_id: id } = tried;
    const newest = this.#statuses.get(id) ?? tried;
    this.#statuses.delete(id);
    if (!isTold || newest !== tried) this.#statuses.set(id, newest);
  }

  /** What is kept may be from a time when the clock was ahead: each attempt has its date, after the last one that was taken. */
  async #announce(node: UndatedNode): Promise<void> {
    const { now, lastAnnouncedMs } = this.#options;
    const lastMs = this.#lastAnnouncedMs ?? (await lastAnnouncedMs());
    this.#lastAnnouncedMs = undefined;
    const atMs = Math.max(now(), lastMs + 1);
    await this.#post(NETWORK_POST.node, { ...node, announced_at_ms: atMs });
    this.#lastAnnouncedMs = atMs;
  }

  /** When a status was observed; when it is sent, each after the one before, where the clock was ahead of what any may be. */
  #dateOf({ observed_at_ms: observedMs }: InstanceStatusContent): number {
    const nowMs = this.#options.now();
    if (observedMs <= nowMs + AHEAD_MAX_MS) return observedMs;
    this.#lastStatusMs = Math.max(nowMs, this.#lastStatusMs + 1);
    return this.#lastStatusMs;
  }

  async #post(type: string, content: unknown): Promise<void> {
    const { core, log } = this.#options;
    try {
      await core.postMessage({ type: 'POST', channel: NETWORK_CHANNEL.compute, content: { type, content } });
    } catch (error) {
      if (!(error instanceof AppError && error.kind === 'invalid') || isClockFault(error)) throw error;
      // The same message would be refused for ever, and hold up all others.
      log.error({ err: error, type }, 'the core node refused a message from this node, which is dropped');
    }
  }
}
