import { backoffMs, type Logger, pause, Slots } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Instance, isSamePlacement, type Placement } from './view.ts';

export interface OutboxOptions {
  /** Sends one decision to the core node, unless the signal has ended; resolves when the node has taken it. */
  readonly publish: (instanceId: string, placement: Placement, signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

interface Entry {
  readonly placement: Placement;
  readonly stop: AbortController;
  failures: number;
  /** How often the core node took it. More than a moment later it should show an effect. */
  taken: number;
  failure: string | null;
}

const PUBLISHING_MAX = 16;
/** The core node is away or busy. */
const RETRY_BASE_MS = 100;
const RETRY_MAX_MS = 5_000;
/** The core node refuses: a clock or a key is wrong, which takes a person. */
const REFUSED_BASE_MS = 5_000;
const REFUSED_MAX_MS = 60_000;
/** The core node took it, and the instance does not show it. */
const UNCONFIRMED_BASE_MS = 5_000;
const UNCONFIRMED_MAX_MS = 3_600_000;

const isRefusal = (error: unknown) =>
  error instanceof AppError && ['invalid', 'unauthorized', 'refused'].includes(error.kind);

/**
 * Decisions on their way: each is sent until the core node's own view of the instance shows it. Nothing here needs to
 * be kept: after a crash the same decisions follow from the same view.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #slots = new Slots(PUBLISHING_MAX);
  readonly #entries = new Map<string, Entry>();

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** What was decided for the instance and does not show yet. */
  get(instanceId: string): Placement | undefined {
    return this.#entries.get(instanceId)?.placement;
  }

  /** Decisions that the core node took and that had no effect for longer than a moment, and how the last failure reads. */
  get trouble(): { unconfirmed: number; failure: string | null } {
    let unconfirmed = 0;
    let failure: string | null = null;
    for (const entry of this.#entries.values()) {
      if (entry.taken > 1) unconfirmed++;
      failure = entry.failure ?? failure;
    }
    return { unconfirmed, failure };
  }

  /** Takes a decision in and sends it at once; a newer one replaces an older one. */
  offer(instanceId: string, placement: Placement): void {
    this.drop(instanceId);
    const entry: Entry = { placement, stop: new AbortController(), failures: 0, taken: 0, failure: null };
    this.#entries.set(instanceId, entry);
    void this.#deliver(instanceId, entry);
  }

  /**
   * Lets go of a decision that shows, or that somebody else overtook.
   *
   * @param before the instance as it was told before
   */
  settle(instance: Instance, before: Placement | undefined): void {
    const entry = this.#entries.get(instance.instanceId);
    if (!entry) return;
    const overtaken = instance.nodeId !== null && instance.nodeId !== (before?.nodeId ?? null);
    if (overtaken || isSamePlacement(instance, entry.placement)) this.drop(instance.instanceId);
  }

  drop(instanceId: string): void {
    this.#entries.get(instanceId)?.stop.abort();
    this.#entries.delete(instanceId);
  }

  /** Lets go of what is about instances that no longer exist. */
  keepOnly(instances: ReadonlyMap<string, Instance>): void {
    for (const instanceId of this.#entries.keys()) if (!instances.has(instanceId)) this.drop(instanceId);
  }

  /** Lets go of everything. @returns what it was about */
  clear(): string[] {
    const instanceIds = [...this.#entries.keys()];
    for (const instanceId of instanceIds) this.drop(instanceId);
    return instanceIds;
  }

  [Symbol.dispose](): void {
    this.clear();
  }

  async #deliver(instanceId: string, entry: Entry): Promise<void> {
    const { signal } = entry.stop;
    while (!signal.aborted) {
      const waitMs = await this.#slots.run(() => this.#send(instanceId, entry));
      if (!(await pause(waitMs, signal))) return;
    }
  }

  /** One attempt. @returns milliseconds until the next one is due */
  async #send(instanceId: string, entry: Entry): Promise<number> {
    const { publish, log } = this.#options;
    if (entry.stop.signal.aborted) return 0;
    try {
      await publish(instanceId, entry.placement, entry.stop.signal);
    } catch (error) {
      if (entry.stop.signal.aborted) return 0;
      entry.failures++;
      entry.failure = (error as Error).message;
      const level = entry.failures === 1 ? 'warn' : 'debug';
      log[level]({ err: error, instance_id: instanceId }, 'a decision could not be published; retrying');
      return isRefusal(error)
        ? backoffMs(entry.failures, REFUSED_BASE_MS, REFUSED_MAX_MS)
        : backoffMs(entry.failures, RETRY_BASE_MS, RETRY_MAX_MS);
    }
    entry.failures = 0;
    entry.failure = null;
    entry.taken++;
    if (entry.taken === 2)
      log.warn(
        { instance_id: instanceId },
        'the core node stored a decision without effect; it may not trust this scheduler',
      );
    return backoffMs(entry.taken, UNCONFIRMED_BASE_MS, UNCONFIRMED_MAX_MS);
  }
}
