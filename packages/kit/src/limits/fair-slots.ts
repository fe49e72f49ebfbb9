import { AppError } from '@skerry/protocol/forms';
import { networkKeyOf } from '../net/client-address.ts';
import type { Client } from './client.ts';
import { FairLine, type NetworkOf, type Waiter } from './fair-line.ts';
import { type Held, type NoShare, type ShareLimits, Shares } from './shares.ts';
import { YieldingShares } from './yielding-shares.ts';

export interface FairSlotsOptions {
  /** Tasks that run at once. */
  readonly running: ShareLimits;
  /** Those that wait for it. Where strangers have no more of these, a client that has none takes the newest of the client that has most. */
  readonly waiting: ShareLimits;
  /** Whoever waited so long is refused. */
  readonly waitMs: number;
  /** What they are, for whoever is refused, such as `histories`. */
  readonly what: string;
  /** Seconds after which whoever is refused is told to come back. */
  readonly retryAfter: number;
  /** Which clients count as of one network, by their keys: networkKeyOf where left out. Undefined: one that is a network of its own. */
  readonly networkOf?: NetworkOf;
}

type Asking = Pick<Client, 'key' | 'isExempt'>;

/**
 * Lets so many tasks run at once, each client its share of them; the others wait. What is free goes to whoever has the fewest running,
 * of these to whose network has the fewest, then to whoever was not served for longest, and then to the first to come: one
 * that asks for much waits for itself, and holds up nobody else.
 */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  readonly #running: Shares;
  /** How many of them each network has, which may be any number of clients. */
  readonly #byNetwork = new Map<string, number>();
  readonly #waiting: YieldingShares;
  readonly #line: FairLine;
  readonly #networkOf: NetworkOf;
  #came = 0;
  /** When those who have something running or waiting were served last: the how many-th it was. */
  readonly #served = new Map<string, number>();
  #count = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
    this.#running = new Shares(options.running);
    this.#networkOf = options.networkOf ?? networkKeyOf;
    this.#waiting = new YieldingShares(options.waiting, 'newest', this.#networkOf);
    this.#line = new FairLine({
      networkOf: this.#networkOf,
      heldBy: (key) => this.heldBy(key),
      heldNear: (key) => this.heldNear(key),
      servedAt: (key) => this.#served.get(key) ?? 0,
    });
  }

  /** How many run. */
  get running(): number {
    return this.#running.held;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.count;
  }

  /** How many a client has running. */
  heldBy(key: string): number {
    return this.#running.heldBy(key);
  }

  /** How many a client's network has running; the client, where it is none of many of a network. */
  heldNear(key: string): number {
    const network = this.#networkOf(key);
    return network === undefined ? this.heldBy(key) : (this.#byNetwork.get(network) ?? 0);
  }

  /** Whose turn it is once another client gives a slot back; undefined where nobody waits for that. */
  get next(): Asking | undefined {
    return this.#line.first((client) => this.#running.whyNot(client) === 'all')?.client;
  }

  /** Counts a client that has a slot as served just now: one that it has to give up goes to whoever was next, not to itself. */
  noteServed({ key }: Asking): void {
    this.#served.set(key, ++this.#count);
    this.#line.note(key);
  }

  /** Whether a client that comes now waits for nobody. */
  isFreeFor(client: Asking): boolean {
    return this.#running.whyNot(client) === undefined;
  }

  /**
   * A slot, given back when it is disposed of.
   * @throws AppError RATE_LIMITED where the client has its share, OVERLOADED where all is taken; the signal's reason when it ends first
   */
  async take(client: Asking, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    const free = this.#takeRunning(client);
    if (typeof free !== 'string') this.noteServed(client);
    const running = typeof free === 'string' ? await this.#wait(client, signal) : free;
    return {
      [Symbol.dispose]: () => {
        running.release();
        this.#serveNext();
        this.#forget(client);
      },
    };
  }

  /** Runs a task in a slot. Rejects as `take` does. */
  async run<T>(client: Asking, task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    using _slot = await this.take(client, signal);
    return await task();
  }

  #takeRunning(client: Asking): Held | NoShare {
    const running = this.#running.take(client);
    if (typeof running === 'string') return running;
    const network = client.isExempt ? undefined : this.#networkOf(client.key);
    this.#countNear(network, 1);
    this.#line.note(client.key);
    let isHeld = true;
    return {
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        running.release();
        this.#countNear(network, -1);
        this.#line.note(client.key);
      },
    };
  }

  #countNear(network: string | undefined, more: number): void {
    if (network === undefined) return;
    const held = (this.#byNetwork.get(network) ?? 0) + more;
    if (held > 0) this.#byNetwork.set(network, held);
    else this.#byNetwork.delete(network);
  }

  async #wait(client: Asking, signal: AbortSignal | undefined): Promise<Held> {
    const { promise, resolve, reject } = Promise.withResolvers<Held>();
    const waiter: Waiter = { begin: resolve, nth: ++this.#came };
    // Who was given a slot already has it; who leaves is given none.
    const leave = (reason: unknown) => {
      this.#line.leave(client, waiter);
      reject(reason);
    };
    const place = this.#waiting.take(client, () => leave(this.#refuse(false)));
    if (typeof place === 'string') throw this.#refuse(place === 'share');
    this.#line.join(client, waiter);
    const abort = () => leave(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    const refuse = () => leave(this.#refuse(this.#running.whyNot(client) === 'share'));
    const timer = setTimeout(refuse, this.#options.waitMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      place.release();
      this.#forget(client);
    }
  }

  /** Only who has something running or waiting is remembered. */
  #forget({ key }: Asking): void {
    if (this.#running.heldBy(key) + this.#waiting.heldBy(key) === 0) this.#served.delete(key);
  }

  #serveNext(): void {
    const next = this.#line.first((client) => this.isFreeFor(client));
    const running = next && this.#takeRunning(next.client);
    if (!next || !running || typeof running === 'string') return;
    this.#line.leave(next.client, next.waiter);
    this.noteServed(next.client);
    next.waiter.begin(running);
  }

  #refuse(isShare: boolean): AppError {
    const { running, waiting, what, retryAfter } = this.#options;
    const details = { retry_after: retryAfter };
    return isShare
      ? new AppError(
          'RATE_LIMITED',
          `a client may have ${running.perClient} ${what} at once, and ${waiting.perClient} that wait for it`,
          { details },
        )
      : new AppError('OVERLOADED', `too many ${what} at once; try again later`, { details });
  }
}
